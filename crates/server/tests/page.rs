//! The files of the looking glass.

use crate::common::Lab;

#[test]
fn files_are_served_with_tags_and_a_policy() {
    let lab = Lab::new(|_| {});
    let mut client = lab.client();
    for (path, file, kind) in [
        ("/", "index.html", "text/html; charset=utf-8"),
        ("/?q=193.0.6.139&table=bgp", "index.html", "text/html; charset=utf-8"),
        ("/app.js", "app.js", "text/javascript; charset=utf-8"),
        ("/style.css", "style.css", "text/css; charset=utf-8"),
    ] {
        let answer = client.get(path, &[]).unwrap();
        let content = std::fs::read(format!("{}/page/{file}", env!("CARGO_MANIFEST_DIR"))).unwrap();
        assert_eq!((answer.status, &answer.body[..]), (200, &content[..]), "{path}");
        assert_eq!(answer.headers["content-type"], kind);
        let policy = answer.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
        assert!(!policy.contains("unsafe"));
        let tag = answer.headers["etag"].to_str().unwrap().to_owned();
        for known in [tag.clone(), format!("W/{tag}"), format!("\"x\", {tag}"), "*".to_owned()] {
            let again = client.get(path, &[("if-none-match", &known)]).unwrap();
            assert_eq!((again.status, again.body.len()), (304, 0), "{known}");
        }
        assert_eq!(client.get(path, &[("if-none-match", "\"other\"")]).unwrap().status, 200);
    }
}
