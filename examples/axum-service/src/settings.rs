use std::{
    error::Error,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use slate_core::Config;

/// The settings of the service: a TOML file. Environment variables replace single values.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The address to listen on; port 0 takes a free one. `SHOP_LISTEN`.
    pub listen: String,
    /// The folder for backups. `SHOP_BACKUPS`.
    pub backups: PathBuf,
    /// The database. `SHOP_DATABASE_URL` replaces the URL.
    pub database: Config,
}

impl Settings {
    /// Reads a file and the environment.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or a value is missing, invalid or unknown.
    pub fn load(path: &Path) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let in_file = |error: &dyn Error| format!("{}: {error}", path.display());
        let text = std::fs::read_to_string(path).map_err(|error| in_file(&error))?;
        let settings: Self = toml::from_str(&text).map_err(|error| in_file(&error))?;
        Ok(settings.replaced_by(|name| std::env::var(name).ok()))
    }

    /// Replaces values by those of the variables `SHOP_LISTEN`, `SHOP_BACKUPS` and `SHOP_DATABASE_URL`.
    #[must_use]
    pub fn replaced_by(mut self, variable: impl Fn(&str) -> Option<String>) -> Self {
        if let Some(listen) = variable("SHOP_LISTEN") {
            self.listen = listen;
        }
        if let Some(backups) = variable("SHOP_BACKUPS") {
            self.backups = backups.into();
        }
        if let Some(url) = variable("SHOP_DATABASE_URL") {
            self.database.url = url;
        }
        self
    }
}
