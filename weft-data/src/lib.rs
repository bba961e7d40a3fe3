//! Values and the text forms of numbers.
