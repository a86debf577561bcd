//! The files in `slt/`, statements with the rows or the error that is expected.

use std::fs;
use std::path::Path;
use std::time::Duration;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::error::DataFusionError;
use datafusion::prelude::SessionContext;
use sqllogictest::{AsyncDB, DBOutput, DefaultColumnType, Runner};

use crate::common::{NETWORKS, context, write};

struct Database(SessionContext);

impl Database {
    async fn rows(&self, sql: &str) -> Result<Vec<RecordBatch>, DataFusionError> {
        self.0.sql(sql).await?.collect().await
    }
}

#[async_trait::async_trait]
impl AsyncDB for Database {
    type Error = DataFusionError;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, DataFusionError> {
        let batches = self.rows(sql).await?;
        let types = batches.first().map_or(0, RecordBatch::num_columns);
        let options = FormatOptions::default().with_null("NULL");
        let mut rows = Vec::new();
        for batch in &batches {
            let columns =
                batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options));
            let columns = columns.collect::<Result<Vec<_>, _>>()?;
            rows.extend((0..batch.num_rows()).map(|row| {
                columns.iter().map(|column| column.value(row).to_string()).collect::<Vec<_>>()
            }));
        }
        Ok(DBOutput::Rows { types: vec![DefaultColumnType::Any; types], rows })
    }

    fn engine_name(&self) -> &str {
        "DataFusion"
    }

    async fn sleep(time: Duration) {
        tokio::time::sleep(time).await;
    }

    async fn shutdown(&mut self) {}
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_of_the_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    write(&at.join("networks.fib"), NETWORKS);
    write(&at.join("others.fib"), [("10.20.0.0/24", Some("lab"), Some(7))]);
    fs::write(at.join("broken.fib"), "no snapshot").expect("a file");
    let path = |name| at.join(name).display().to_string();
    let names = [
        ("$networks", path("networks.fib")),
        ("$others", path("others.fib")),
        ("$folder", path("")),
    ];
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sql/slt");
    let mut ran = 0;
    for file in fs::read_dir(files).expect("the files") {
        let file = file.expect("a file").path();
        let mut text = fs::read_to_string(&file).expect("text");
        for (name, value) in &names {
            text = text.replace(name, value.trim_end_matches('/'));
        }
        let mut runner = Runner::new(async || Ok(Database(context())));
        let outcome = runner.run_multi_async(sqllogictest::parse(&text).expect("statements")).await;
        outcome.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        ran += 1;
    }
    assert!(ran > 0);
}

/// Each statement of `docs/datafusion.md` gives the rows that stand behind it.
#[tokio::test]
async fn the_page() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/datafusion.md");
    let page = fs::read_to_string(page).expect("the page");
    let folder = tempfile::tempdir().expect("a folder");
    let networks = folder.path().join("networks.fib");
    write(&networks, NETWORKS);
    let sql = page.split("```sql\n").nth(1).and_then(|rest| rest.split("```").next());
    let sql = sql.expect("a block of SQL").replace("networks.fib", &networks.display().to_string());
    let (mut statement, mut expected, mut ran) = (String::new(), Vec::new(), 0);
    // One more statement at the end, so that the last one is compared.
    for line in sql.lines().chain(["SELECT 1"]) {
        if let Some(row) = line.strip_prefix("-- ") {
            expected.push(row.to_owned());
            continue;
        }
        if !expected.is_empty() {
            let found = Database(context()).run(&statement).await.expect("rows");
            let DBOutput::Rows { rows, .. } = found else { panic!("{statement}") };
            let found: Vec<_> = rows.iter().map(|row| row.join(" | ")).collect();
            assert_eq!(found, expected, "{statement}");
            (statement, expected, ran) = (String::new(), Vec::new(), ran + 1);
        }
        statement += line;
        statement += "\n";
    }
    assert_eq!(ran, 5);
}
