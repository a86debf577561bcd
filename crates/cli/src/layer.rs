//! `--layer NAME=SOURCE`: several tables side by side, answered by one lookup.

use std::time::Instant;

use clap::Args;

use crate::failure::Failure;
use crate::source::{self, ReadArgs, Source};
use crate::table::{self, Loaded};

/// The sources of a table: sources that are merged, or layers side by side.
#[derive(Args, Debug)]
pub struct TableArgs {
    /// Table files, - for standard input, snapshots, gen:..., embedded. Several are merged in order
    #[arg(required_unless_present = "layer", value_name = "SOURCE")]
    pub sources: Vec<String>,
    /// A layer: a named table, whose columns become NAME_column. Repeatable. One lookup then answers for all layers
    #[arg(long, value_name = "NAME=SOURCE,...", conflicts_with = "sources")]
    pub layer: Vec<String>,
    #[command(flatten)]
    pub read: ReadArgs,
}

impl TableArgs {
    /// Whether a source is standard input.
    pub fn has_input(&self) -> bool {
        self.sources.iter().any(|list| list.split(',').any(|name| name == "-"))
    }

    /// All sources, those of layers one after the other.
    pub fn all_sources(&self) -> Result<Vec<(String, Source)>, Failure> {
        match &*self.layer {
            [] => source::parse_list(&self.sources, &self.read),
            layers => sources(layers, &self.read),
        }
    }

    /// Reads the table. A table without routes is an error unless `--allow-empty` is given.
    pub fn load(&self) -> Result<Loaded, Failure> {
        self.load_with(&self.read)
    }

    /// Reads the table with other options.
    pub fn load_with(&self, read: &ReadArgs) -> Result<Loaded, Failure> {
        let loaded = if self.layer.is_empty() {
            table::load(&source::parse_list(&self.sources, read)?, read)?
        } else {
            load(&parse(&self.layer, read)?, read)?
        };
        let is_empty = loaded.table.v4.is_empty() && loaded.table.v6.is_empty();
        if is_empty && !self.read.allow_empty {
            return Err(Failure::new(format_args!(
                "{}: no routes at all, nothing written",
                loaded.name
            ))
            .hint("--allow-empty takes a table without routes"));
        }
        Ok(loaded)
    }
}

/// A layer: its name, and the sources that are merged into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    name: String,
    sources: Vec<(String, Source)>,
}

/// The sources of layers, one after the other.
pub fn sources(layers: &[String], read: &ReadArgs) -> Result<Vec<(String, Source)>, Failure> {
    Ok(parse(layers, read)?.into_iter().flat_map(|layer| layer.sources).collect())
}

/// Parses `NAME=SOURCE,...` arguments.
pub fn parse(arguments: &[String], read: &ReadArgs) -> Result<Vec<Layer>, Failure> {
    let mut layers: Vec<Layer> = Vec::new();
    for argument in arguments {
        let named = argument.split_once('=').filter(|(name, source)| {
            !source.is_empty() && !name.is_empty() && !name.contains(['/', ',', '"', ' '])
        });
        let Some((name, sources)) = named else {
            return Err(Failure::new(format_args!("--layer {argument:?} is not NAME=TABLE"))
                .hint("for instance --layer geo=countries.csv --layer asn=rib.gz"));
        };
        if layers.iter().any(|layer| layer.name == name) {
            return Err(Failure::new(format_args!("two layers are called {name:?}"))
                .hint("tables of one layer are separated by commas: --layer geo=a.csv,b.csv"));
        }
        let sources = source::parse_list(&[sources.to_owned()], read)?;
        layers.push(Layer { name: name.to_owned(), sources });
    }
    Ok(layers)
}

/// Reads all layers into one table.
pub fn load(layers: &[Layer], read: &ReadArgs) -> Result<Loaded, Failure> {
    let loaded: Vec<(&str, Loaded)> = layers
        .iter()
        .map(|layer| Ok((layer.name.as_str(), table::load_aloud(&layer.sources, read)?)))
        .collect::<Result<_, Failure>>()?;
    let started = Instant::now();
    let tables: Vec<_> = loaded.iter().map(|(name, loaded)| (*name, &loaded.table)).collect();
    let table = fibula_rib::layers(&tables)?;
    let mut stages: Vec<_> = loaded.iter().flat_map(|(_, loaded)| loaded.stages.clone()).collect();
    stages.push(("layer", started.elapsed()));
    let name = loaded.iter().map(|(name, loaded)| format!("{name}={}", loaded.name));
    let name = name.collect::<Vec<_>>().join(" ");
    let damaged = loaded.iter().map(|(_, loaded)| loaded.damaged).sum();
    Ok(Loaded { name, table, stages, damaged, snapshot: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments() {
        let parse = |list: &[&str]| {
            let list: Vec<_> = list.iter().map(|&argument| argument.to_owned()).collect();
            parse(&list, &ReadArgs::automatic())
        };
        let layers = parse(&["geo=embedded", "x=embedded,gen:v4:2014:10:1"]).unwrap();
        assert_eq!((layers[0].name.as_str(), layers[1].sources.len()), ("geo", 2));
        for bad in [&["embedded"][..], &["=embedded"], &["a="], &["a=embedded", "a=embedded"]] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }
}
