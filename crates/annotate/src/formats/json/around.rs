//! The object around an array of objects, as cloud providers deliver logs: `{"Records":[{...},{...}]}`.

/// The position of the array, if the text begins with an object of which a member is an array of objects, and all
/// members before it are neither arrays nor objects.
pub(super) fn opens_array(text: &[u8]) -> Option<usize> {
    let mut at = after_blanks(text, 0);
    let mut opens = b'{';
    loop {
        if text.get(at) != Some(&opens) {
            return None;
        }
        opens = b',';
        at = string_end(text, after_blanks(text, at + 1))?;
        at = after_blanks(text, at);
        if text.get(at) != Some(&b':') {
            return None;
        }
        at = after_blanks(text, at + 1);
        match text.get(at)? {
            b'[' => {
                let first = text.get(after_blanks(text, at + 1));
                return (first == Some(&b'{')).then_some(at);
            }
            b'{' => return None,
            b'"' => at = string_end(text, at)?,
            _ => at += text[at..].iter().position(|byte| b",}]\n".contains(byte))?,
        }
        at = after_blanks(text, at);
    }
}

/// The end of the object whose content begins at the first byte, behind its brace; `None` if it is not complete.
pub(super) fn end_within(data: &[u8]) -> Option<usize> {
    let (mut depth, mut quoted, mut escaped) = (1usize, false, false);
    for (at, byte) in data.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'{' => depth += 1,
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

fn after_blanks(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    at + rest.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(rest.len())
}

/// The end of the string that begins at `at`.
fn string_end(text: &[u8], at: usize) -> Option<usize> {
    let inside = text.get(at..)?.strip_prefix(b"\"")?;
    let mut escaped = false;
    let close = inside.iter().position(|byte| {
        let is_end = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        is_end
    })?;
    Some(at + close + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_of_objects() {
        for (text, at) in [
            ("{\"Records\":[{", Some(11)),
            (" {\n  \"v\": \"a\\\"b\", \"n\":1 ,\"Records\" : [ {", Some(37)),
            ("{\"Records\":[", None),
            ("{\"Records\":[1,{", None),
            ("{\"a\":{\"b\":[{", None),
            ("{\"a\":[],\"b\":[{", None),
            ("{\"a\" [{", None),
            ("{}", None),
            ("", None),
        ] {
            assert_eq!(opens_array(text.as_bytes()), at, "{text}");
        }
    }

    #[test]
    fn ends() {
        assert_eq!(end_within(b",\"a\":{\"b\":\"}\"}}x"), Some(15));
        assert_eq!(end_within(b"{}"), None);
    }
}
