//! The files of the looking glass.

use std::fs;
use std::path::Path;

use crate::common::Lab;

/// All files of the folder, and the page itself.
#[test]
fn files_are_served_with_tags_and_a_policy() {
    let lab = Lab::new(|_| {});
    let mut client = lab.client();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("page");
    let index = "index.html".to_owned();
    let mut requests = vec![
        ("/".to_owned(), index.clone()),
        ("/?q=193.0.6.139&table=bgp".to_owned(), index.clone()),
    ];
    // Links get parameters on their way, and lose the ends of escapes.
    requests.extend(
        ["/?q=AS3333&utm_source=mail&fbclid=x", "/?q=&q=1&%ff=%"]
            .map(|path| (path.to_owned(), index.clone())),
    );
    for file in fs::read_dir(&folder).unwrap() {
        let file = file.unwrap().file_name().into_string().unwrap();
        requests.push((format!("/{file}"), file));
    }
    for (path, file) in requests {
        let kind = match file.rsplit('.').next().unwrap() {
            "html" => "text/html; charset=utf-8",
            "js" => "text/javascript; charset=utf-8",
            "css" => "text/css; charset=utf-8",
            other => panic!("{other}"),
        };
        let answer = client.get(&path, &[]).unwrap();
        let content = fs::read(folder.join(&file)).unwrap();
        assert_eq!((answer.status, &answer.body[..]), (200, &content[..]), "{path}");
        assert_eq!(answer.headers["content-type"], kind);
        let policy = answer.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
        assert!(!policy.contains("unsafe"));
        let tag = answer.headers["etag"].to_str().unwrap().to_owned();
        for known in [tag.clone(), format!("W/{tag}"), format!("\"x\", {tag}"), "*".to_owned()] {
            let again = client.get(&path, &[("if-none-match", &known)]).unwrap();
            assert_eq!((again.status, again.body.len()), (304, 0), "{known}");
        }
        assert_eq!(client.get(&path, &[("if-none-match", "\"other\"")]).unwrap().status, 200);
    }
}
