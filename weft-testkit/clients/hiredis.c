/* hiredis against a running server: synchronous, pipelined, and asynchronous with a poll loop of our own.
 *
 * Usage: hiredis PORT SOCKET. Prints one line per check that passed; the first one that does not ends the run.
 */

#include <hiredis/async.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIPELINE 5000
#define ASYNCHRONOUS 1000

static void fail(const char *name, const char *what) {
    fprintf(stderr, "hiredis: %s: %s\n", name, what);
    exit(1);
}

/* Takes the reply over. `expected` NULL is the absent string. */
static void check(const char *name, redisContext *context, redisReply *reply, int type, const char *expected, size_t length) {
    if (reply == NULL) fail(name, context->errstr);
    if (reply->type != type) fail(name, reply->str ? reply->str : "a reply of another type");
    if (expected != NULL && (reply->len != length || memcmp(reply->str, expected, length) != 0)) fail(name, reply->str);
    freeReplyObject(reply);
    printf("ok %s\n", name);
}

static void text(const char *name, redisContext *context, redisReply *reply, int type, const char *expected) {
    check(name, context, reply, type, expected, strlen(expected));
}

static void number(const char *name, redisContext *context, redisReply *reply, long long expected) {
    if (reply == NULL) fail(name, context->errstr);
    if (reply->type != REDIS_REPLY_INTEGER || reply->integer != expected) fail(name, "another reply");
    freeReplyObject(reply);
    printf("ok %s\n", name);
}

static void commands(redisContext *context) {
    static const char binary[] = "a\0b\r\nc";
    text("flush", context, redisCommand(context, "FLUSHALL"), REDIS_REPLY_STATUS, "OK");
    text("ping", context, redisCommand(context, "PING"), REDIS_REPLY_STATUS, "PONG");
    text("set", context, redisCommand(context, "SET %s %s", "greeting", "hello"), REDIS_REPLY_STATUS, "OK");
    text("get", context, redisCommand(context, "GET greeting"), REDIS_REPLY_STRING, "hello");
    check("get of nothing", context, redisCommand(context, "GET nothing"), REDIS_REPLY_NIL, NULL, 0);
    text("set binary", context, redisCommand(context, "SET %b %b", "k\0ey", (size_t)4, binary, sizeof(binary) - 1), REDIS_REPLY_STATUS, "OK");
    check("get binary", context, redisCommand(context, "GET %b", "k\0ey", (size_t)4), REDIS_REPLY_STRING, binary, sizeof(binary) - 1);
    number("incr", context, redisCommand(context, "INCRBY count %d", 42), 42);
    number("del", context, redisCommand(context, "DEL count nothing"), 1);
    text("error", context, redisCommand(context, "INCR greeting"), REDIS_REPLY_ERROR, "ERR value is not an integer or out of range");

    const char *words[] = {"MSET", "a", "1", "b", "22"};
    text("argv", context, redisCommandArgv(context, 5, words, NULL), REDIS_REPLY_STATUS, "OK");
    redisReply *reply = redisCommand(context, "MGET a nothing b");
    if (reply == NULL) fail("mget", context->errstr);
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 3 || strcmp(reply->element[0]->str, "1") != 0 ||
        reply->element[1]->type != REDIS_REPLY_NIL || strcmp(reply->element[2]->str, "22") != 0)
        fail("mget", "another reply");
    freeReplyObject(reply);
    printf("ok mget\n");

    for (int i = 0; i < PIPELINE; i++) redisAppendCommand(context, "INCR piped");
    for (int i = 0; i < PIPELINE; i++) {
        if (redisGetReply(context, (void **)&reply) != REDIS_OK) fail("pipeline", context->errstr);
        if (reply->type != REDIS_REPLY_INTEGER || reply->integer != i + 1) fail("pipeline", "another reply");
        freeReplyObject(reply);
    }
    printf("ok pipeline\n");
}

/* What the asynchronous context wants to be told about. */
static short wanted;
static int answered;

static void add_read(void *unused) { (void)unused; wanted |= POLLIN; }
static void remove_read(void *unused) { (void)unused; wanted &= ~POLLIN; }
static void add_write(void *unused) { (void)unused; wanted |= POLLOUT; }
static void remove_write(void *unused) { (void)unused; wanted &= ~POLLOUT; }
static void cleanup(void *unused) { (void)unused; wanted = 0; }

static void on_connect(const redisAsyncContext *context, int status) {
    if (status != REDIS_OK) fail("asynchronous connect", context->errstr);
    printf("ok asynchronous connect\n");
}

static void on_disconnect(const redisAsyncContext *context, int status) {
    if (status != REDIS_OK) fail("asynchronous disconnect", context->errstr);
    printf("ok asynchronous disconnect\n");
    wanted = -1;
}

static void on_reply(redisAsyncContext *context, void *data, void *expected) {
    redisReply *reply = data;
    if (reply == NULL) fail("asynchronous reply", context->errstr);
    if (reply->type != REDIS_REPLY_INTEGER || reply->integer != (long long)(size_t)expected) fail("asynchronous reply", "another reply");
    if (++answered == ASYNCHRONOUS) {
        printf("ok asynchronous replies\n");
        redisAsyncDisconnect(context);
    }
}

static void asynchronous(int port) {
    redisAsyncContext *context = redisAsyncConnect("127.0.0.1", port);
    if (context == NULL || context->err) fail("asynchronous connect", context ? context->errstr : "no memory");
    int descriptor = context->c.fd;
    context->ev.addRead = add_read;
    context->ev.delRead = remove_read;
    context->ev.addWrite = add_write;
    context->ev.delWrite = remove_write;
    context->ev.cleanup = cleanup;
    redisAsyncSetConnectCallback(context, on_connect);
    redisAsyncSetDisconnectCallback(context, on_disconnect);
    for (size_t i = 1; i <= ASYNCHRONOUS; i++) redisAsyncCommand(context, on_reply, (void *)i, "INCR asynchronous");
    while (wanted > 0) {
        struct pollfd waiting = {descriptor, wanted, 0};
        if (poll(&waiting, 1, 20000) <= 0) fail("asynchronous", "nothing comes");
        if (waiting.revents & (POLLIN | POLLHUP | POLLERR)) redisAsyncHandleRead(context);
        if (wanted > 0 && waiting.revents & POLLOUT) redisAsyncHandleWrite(context);
    }
    if (answered != ASYNCHRONOUS) fail("asynchronous", "replies are missing");
}

int main(int count, char **words) {
    if (count != 3) return 2;
    signal(SIGPIPE, SIG_IGN);
    int port = atoi(words[1]);
    struct timeval timeout = {20, 0};
    redisContext *context = redisConnectWithTimeout("127.0.0.1", port, timeout);
    if (context == NULL || context->err) fail("connect", context ? context->errstr : "no memory");
    redisSetTimeout(context, timeout);
    commands(context);
    if (redisReconnect(context) != REDIS_OK) fail("reconnect", context->errstr);
    text("after reconnecting", context, redisCommand(context, "GET greeting"), REDIS_REPLY_STRING, "hello");
    redisFree(context);
    context = redisConnectUnix(words[2]);
    if (context == NULL || context->err) fail("Unix socket", context ? context->errstr : "no memory");
    text("Unix socket", context, redisCommand(context, "GET greeting"), REDIS_REPLY_STRING, "hello");
    redisFree(context);
    asynchronous(port);
    return 0;
}
