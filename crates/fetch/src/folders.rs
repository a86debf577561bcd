//! Where the cache and the configuration are: the XDG base directories.

use std::env;
use std::path::PathBuf;

/// The folder of the cache: `$XDG_CACHE_HOME/fibula`, else `~/.cache/fibula`; on Windows `%LOCALAPPDATA%\fibula\cache`.
/// `None` if the environment names no home.
pub fn cache_folder() -> Option<PathBuf> {
    #[cfg(windows)]
    let usual = variable("LOCALAPPDATA").map(|folder| folder.join("fibula").join("cache"));
    #[cfg(not(windows))]
    let usual = variable("HOME").map(|home| home.join(".cache").join("fibula"));
    variable("XDG_CACHE_HOME").map(|folder| folder.join("fibula")).or(usual)
}

/// The configuration file: `$XDG_CONFIG_HOME/fibula/config.toml`, else `~/.config/fibula/config.toml`; on Windows
/// `%APPDATA%\fibula\config.toml`. It need not exist.
pub fn config_file() -> Option<PathBuf> {
    #[cfg(windows)]
    let usual = variable("APPDATA");
    #[cfg(not(windows))]
    let usual = variable("HOME").map(|home| home.join(".config"));
    let folder = variable("XDG_CONFIG_HOME").or(usual);
    folder.map(|folder| folder.join("fibula").join("config.toml"))
}

/// The path of a variable. The XDG specification ignores relative ones.
fn variable(name: &str) -> Option<PathBuf> {
    env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}
