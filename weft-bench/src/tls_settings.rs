//! What command lines say about TLS: files, names, ciphers and versions.
//!
//! Owns how they become a configuration. As the tools of Redis do, it verifies that a known authority vouches for the server,
//! and not that the server is called what it was called on the command line. Does not connect.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    SupportedProtocolVersion,
};

use crate::load::Tls;

/// What is said about TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsSettings {
    /// Connections are encrypted. Without it the rest has no effect.
    pub enabled: bool,
    /// The name that the server is asked for (SNI).
    pub server_name: Option<String>,
    /// A file of the authorities' certificates.
    pub authorities: Option<PathBuf>,
    /// A folder of such files.
    pub authorities_folder: Option<PathBuf>,
    /// A file of our own certificate.
    pub certificate: Option<PathBuf>,
    /// A file of the key to it.
    pub key: Option<PathBuf>,
    /// Whoever answers is trusted.
    pub insecure: bool,
    /// Ciphers up to version 1.2, as OpenSSL names them, between colons.
    pub ciphers: Option<String>,
    /// Those of version 1.3.
    pub ciphersuites: Option<String>,
    /// Versions such as "TLSv1.3", between commas.
    pub protocols: Option<String>,
}

/// Where systems keep the certificates of the authorities they trust.
const SYSTEM_AUTHORITIES: &[&str] = &[
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

impl TlsSettings {
    /// What connections to `host` need; `None`: they are not encrypted. The error is for the user.
    pub fn prepare(&self, host: &str) -> Result<Option<Tls>, String> {
        if !self.enabled {
            return Ok(None);
        }
        let provider = Arc::new(self.provider()?);
        let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&self.versions()?)
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(self.verifier(provider)?));
        let mut config = match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => config
                .with_client_auth_cert(certificates(certificate)?, private_key(key)?)
                .map_err(|error| format!("{}: {error}", certificate.display()))?,
            (None, None) => config.with_no_client_auth(),
            _ => return Err("a certificate and its key go together".to_owned()),
        };
        // Every connection costs the server a whole handshake, as with the tools of Redis.
        config.resumption = Resumption::disabled();
        config.enable_sni = self.server_name.is_some();
        let name = self.server_name.as_deref().unwrap_or(host);
        let name = match ServerName::try_from(name.to_owned()) {
            Ok(name) => name,
            Err(_) if self.server_name.is_none() => ServerName::from(std::net::Ipv4Addr::LOCALHOST),
            Err(error) => return Err(format!("{name}: {error}")),
        };
        Ok(Some(Tls {
            config: Arc::new(config),
            name,
        }))
    }

    /// The ciphers that are wanted.
    fn provider(&self) -> Result<CryptoProvider, String> {
        let mut provider = rustls::crypto::ring::default_provider();
        provider.cipher_suites.retain(|suite| {
            let name = openssl_name(&format!("{:?}", suite.suite()));
            let wanted = match suite.tls13() {
                Some(_) => &self.ciphersuites,
                None => &self.ciphers,
            };
            wanted
                .as_deref()
                .is_none_or(|wanted| is_listed(wanted, &name))
        });
        match provider.cipher_suites.is_empty() {
            true => Err("none of the TLS ciphers is known".to_owned()),
            false => Ok(provider),
        }
    }

    fn versions(&self) -> Result<Vec<&'static SupportedProtocolVersion>, String> {
        let mut versions = Vec::new();
        for name in self
            .protocols
            .as_deref()
            .unwrap_or("TLSv1.2,TLSv1.3")
            .split(',')
        {
            match name.trim() {
                "TLSv1.2" => versions.push(&rustls::version::TLS12),
                "TLSv1.3" => versions.push(&rustls::version::TLS13),
                "TLSv1" | "TLSv1.1" => {}
                other => return Err(format!("there is no TLS version {other}")),
            }
        }
        match versions.is_empty() {
            true => Err("TLS versions below 1.2 are not supported".to_owned()),
            false => Ok(versions),
        }
    }

    fn verifier(&self, provider: Arc<CryptoProvider>) -> Result<Verifier, String> {
        if self.insecure {
            return Ok(Verifier {
                authorities: None,
                known: Vec::new(),
                provider,
            });
        }
        let mut known = Vec::new();
        if let Some(file) = &self.authorities {
            known.extend(certificates(file)?);
        }
        if let Some(folder) = &self.authorities_folder {
            let entries = std::fs::read_dir(folder)
                .map_err(|error| format!("{}: {error}", folder.display()))?;
            for entry in entries.flatten().filter(|entry| entry.path().is_file()) {
                // Other files may lie there too.
                known.extend(certificates(&entry.path()).unwrap_or_default());
            }
        }
        if self.authorities.is_none() && self.authorities_folder.is_none() {
            let chosen = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
            let standard = SYSTEM_AUTHORITIES.iter().map(PathBuf::from);
            if let Some(file) = chosen
                .into_iter()
                .chain(standard)
                .find(|file| file.is_file())
            {
                known.extend(certificates(&file)?);
            }
        }
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(known.iter().cloned());
        let authorities =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
                .build()
                .map_err(|_| {
                    "there is no certificate of an authority to verify the server with".to_owned()
                })?;
        Ok(Verifier {
            authorities: Some(authorities),
            known,
            provider,
        })
    }
}

/// What OpenSSL calls a cipher.
fn openssl_name(name: &str) -> String {
    if let Some(rest) = name.strip_prefix("TLS13_") {
        return format!("TLS_{rest}");
    }
    name.trim_start_matches("TLS_")
        .replace("_WITH", "")
        .replace("AES_", "AES")
        .replace("POLY1305_SHA256", "POLY1305")
        .replace('_', "-")
}

/// Whether a list in OpenSSL's language has a cipher. Of its words for groups, those that mean all of today's ciphers are
/// known.
fn is_listed(list: &str, name: &str) -> bool {
    let mut listed = false;
    for word in list.split([':', ',', ' ']).filter(|word| !word.is_empty()) {
        match word.strip_prefix(['!', '-']) {
            Some(unwanted) if unwanted == name => return false,
            Some(_) => {}
            None => listed |= word == name || matches!(word, "ALL" | "DEFAULT" | "HIGH"),
        }
    }
    listed
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let failed = |why: String| format!("{}: {why}", file.display());
    let text = std::fs::read(file).map_err(|error| failed(error.to_string()))?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match certificates.map_err(|error| failed(error.to_string()))? {
        none if none.is_empty() => Err(failed("there is no certificate in it".to_owned())),
        certificates => Ok(certificates),
    }
}

fn private_key(file: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let failed = |why: String| format!("{}: {why}", file.display());
    let text = std::fs::read(file).map_err(|error| failed(error.to_string()))?;
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| failed(error.to_string()))
}

/// Believes a server whose certificate is, or is vouched for by, one that is known.
#[derive(Debug)]
struct Verifier {
    /// `None`: believes everyone.
    authorities: Option<Arc<WebPkiServerVerifier>>,
    known: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(authorities) = &self.authorities else {
            return Ok(ServerCertVerified::assertion());
        };
        if self.known.contains(end_entity) {
            return Ok(ServerCertVerified::assertion());
        }
        match authorities.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        ) {
            // The name is looked at last.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if self.authorities.is_none() {
            return Ok(HandshakeSignatureValid::assertion());
        }
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if self.authorities.is_none() {
            return Ok(HandshakeSignatureValid::assertion());
        }
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suites(settings: &TlsSettings) -> Result<Vec<String>, String> {
        let provider = settings.provider()?;
        let names = provider.cipher_suites.iter();
        Ok(names
            .map(|suite| openssl_name(&format!("{:?}", suite.suite())))
            .collect())
    }

    #[test]
    fn ciphers_are_chosen_by_the_names_of_openssl() {
        let all = suites(&TlsSettings::default()).unwrap();
        assert_eq!(
            all,
            [
                "TLS_AES_256_GCM_SHA384",
                "TLS_AES_128_GCM_SHA256",
                "TLS_CHACHA20_POLY1305_SHA256",
                "ECDHE-ECDSA-AES256-GCM-SHA384",
                "ECDHE-ECDSA-AES128-GCM-SHA256",
                "ECDHE-ECDSA-CHACHA20-POLY1305",
                "ECDHE-RSA-AES256-GCM-SHA384",
                "ECDHE-RSA-AES128-GCM-SHA256",
                "ECDHE-RSA-CHACHA20-POLY1305",
            ]
        );
        let chosen = TlsSettings {
            ciphers: Some("DEFAULT:!ECDHE-RSA-CHACHA20-POLY1305:@SECLEVEL=1".to_owned()),
            ciphersuites: Some("TLS_AES_128_GCM_SHA256:TLS_NONE".to_owned()),
            ..TlsSettings::default()
        };
        assert_eq!(suites(&chosen).unwrap(), [&all[1..2], &all[3..8]].concat());
        let none = TlsSettings {
            ciphers: Some("RC4-MD5".to_owned()),
            ciphersuites: Some(String::new()),
            ..TlsSettings::default()
        };
        assert_eq!(
            suites(&none),
            Err("none of the TLS ciphers is known".to_owned())
        );
    }

    #[test]
    fn what_cannot_be_is_said() {
        let settings = TlsSettings {
            enabled: true,
            insecure: true,
            ..TlsSettings::default()
        };
        assert!(settings.prepare("a b").unwrap().is_some());
        let refused = |settings: TlsSettings| settings.prepare("h").unwrap_err();
        assert_eq!(
            refused(TlsSettings {
                protocols: Some("TLSv1,TLSv1.1".to_owned()),
                ..settings.clone()
            }),
            "TLS versions below 1.2 are not supported"
        );
        assert_eq!(
            refused(TlsSettings {
                protocols: Some("SSLv3".to_owned()),
                ..settings.clone()
            }),
            "there is no TLS version SSLv3"
        );
        assert_eq!(
            refused(TlsSettings {
                key: Some("/nonexistent".into()),
                ..settings.clone()
            }),
            "a certificate and its key go together"
        );
        assert_eq!(
            refused(TlsSettings {
                insecure: false,
                authorities: Some("/nonexistent".into()),
                ..settings
            }),
            "/nonexistent: No such file or directory (os error 2)"
        );
        assert!(TlsSettings::default().prepare("h").unwrap().is_none());
    }
}
