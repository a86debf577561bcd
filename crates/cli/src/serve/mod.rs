mod config;
mod time;
