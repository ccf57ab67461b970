//! The configuration file of MongoDB's server, turned into options of its command line.

use std::{fs, path::Path};

use saphyr::{LoadableYamlNode, Scalar, Yaml};

use crate::{
    failure::{Failure, Result},
    message::message,
};

/// What a key of the file stands for.
#[derive(Clone, Copy, Debug)]
enum Meaning {
    /// An option that has the same value.
    Option(&'static str),
    /// An option without a value, given if the key is true.
    Switch(&'static str),
    /// An option, or none, for each of these values.
    OneOf(&'static [(&'static str, Option<&'static str>)]),
    /// An option, whatever the value is.
    Implies(&'static str),
    /// A setting without effect on this server.
    Nothing,
}

use Meaning::{Implies, Nothing, OneOf, Option as Value, Switch};

/// The keys, sorted. One that ends with a dot stands for all that begin with it.
static KEYS: &[(&str, Meaning)] = &[
    ("net.bindIp", Value("--bind_ip")),
    ("net.bindIpAll", Switch("--bind_ip=*")),
    ("net.compression.compressors", Nothing),
    ("net.ipv6", Nothing),
    ("net.maxIncomingConnections", Value("--maxConns")),
    ("net.port", Value("--port")),
    ("net.tls.CAFile", Value("--tlsCAFile")),
    ("net.tls.allowConnectionsWithoutCertificates", Switch("--tlsAllowConnectionsWithoutCertificates")),
    ("net.tls.certificateKeyFile", Value("--tlsCertificateKeyFile")),
    ("net.tls.mode", Value("--tlsMode")),
    ("net.unixDomainSocket.", Nothing),
    ("net.wireObjectCheck", Nothing),
    ("operationProfiling.mode", OneOf(&[("off", None), ("slowOp", None)])),
    ("operationProfiling.slowOpThresholdMs", Value("--slowms")),
    ("processManagement.fork", OneOf(&[("false", None)])),
    ("processManagement.pidFilePath", Nothing),
    ("processManagement.timeZoneInfo", Nothing),
    ("replication.enableMajorityReadConcern", Nothing),
    ("replication.oplogSizeMB", Nothing),
    ("replication.replSetName", Value("--replSet")),
    ("security.authorization", OneOf(&[("disabled", Some("--noauth")), ("enabled", Some("--auth"))])),
    ("security.javascriptEnabled", Nothing),
    // Members of a replica set authenticate each other by this file. In MongoDB it also requires clients to log in.
    ("security.keyFile", Implies("--auth")),
    ("storage.dbPath", Value("--dbpath")),
    ("storage.directoryPerDB", Nothing),
    ("storage.engine", Value("--storageEngine")),
    ("storage.inMemory.", Nothing),
    ("storage.journal.", Nothing),
    ("storage.syncPeriodSecs", Nothing),
    ("storage.wiredTiger.collectionConfig.", Nothing),
    ("storage.wiredTiger.engineConfig.cacheSizeGB", Value("--wiredTigerCacheSizeGB")),
    ("storage.wiredTiger.engineConfig.directoryForIndexes", Nothing),
    ("storage.wiredTiger.engineConfig.journalCompressor", Nothing),
    ("storage.wiredTiger.indexConfig.", Nothing),
    ("systemLog.", Nothing),
];

/// The prefix of the keys that set parameters. The rest of such a key is the parameter's name.
const PARAMETER: &str = "setParameter.";

/// Returns the options of the command line that a file stands for. Lists the keys without effect on standard error.
///
/// # Errors
/// Fails if the file cannot be read, or with the name of a key or value that is not supported.
pub(super) fn options(path: &Path) -> Result<Vec<String>> {
    let text = fs::read_to_string(path).map_err(|error| Failure::file(path, error))?;
    let fault = |why: String| Failure::usage(format!("{}: {why}", path.display()));
    let (options, ignored) = read(&text).map_err(fault)?;
    if !ignored.is_empty() {
        message!("{}: without effect: {}", path.display(), ignored.join(", "));
    }
    Ok(options)
}

/// Returns the options of a text, and the keys without effect.
fn read(text: &str) -> std::result::Result<(Vec<String>, Vec<String>), String> {
    let documents = Yaml::load_from_str(text).map_err(|error| error.to_string())?;
    let (mut options, mut ignored) = (Vec::new(), Vec::new());
    let mut entries = Vec::new();
    for document in &documents {
        flatten(document, "", &mut entries)?;
    }
    for (key, value) in entries {
        if let Some(name) = key.strip_prefix(PARAMETER) {
            options.push(format!("--setParameter={name}={value}"));
            continue;
        }
        let Some(meaning) = meaning(&key) else { return Err(format!("unrecognized option: {key}")) };
        match (meaning, &*value) {
            (Value(option), value) => options.push(format!("{option}={value}")),
            (Switch(option), "true") => options.push(option.to_owned()),
            (Switch(_), "false") => {}
            (Switch(_), _) => return Err(format!("{key} is true or false, and not {value:?}")),
            (OneOf(values), value) => match values.iter().find(|(known, _)| *known == value) {
                Some((_, option)) => options.extend(option.map(str::to_owned)),
                None => {
                    let known: Vec<&str> = values.iter().map(|(known, _)| *known).collect();
                    return Err(format!("{key}: {value:?} is not supported, only {}", known.join(" and ")));
                }
            },
            (Implies(option), _) => options.push(option.to_owned()),
            (Nothing, _) => ignored.push(key),
        }
    }
    Ok((options, ignored))
}

fn meaning(key: &str) -> Option<Meaning> {
    let of_key = |(known, _): &&(&str, Meaning)| match known.ends_with('.') {
        true => key.starts_with(known),
        false => key == *known,
    };
    KEYS.iter().find(of_key).map(|(_, meaning)| *meaning)
}

/// Adds the values below a node with their paths. A key may itself contain dots, as in MongoDB.
fn flatten(node: &Yaml<'_>, path: &str, entries: &mut Vec<(String, String)>) -> std::result::Result<(), String> {
    let value = match node {
        Yaml::Mapping(fields) => {
            for (key, value) in fields {
                let Some(key) = key.as_str() else { return Err(format!("a key below {path:?} is no text")) };
                flatten(value, &if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }, entries)?;
            }
            return Ok(());
        }
        // A section whose keys are all commented out.
        Yaml::Value(Scalar::Null) => return Ok(()),
        Yaml::Value(Scalar::Boolean(value)) => value.to_string(),
        Yaml::Value(Scalar::Integer(value)) => value.to_string(),
        Yaml::Value(Scalar::FloatingPoint(value)) => value.to_string(),
        Yaml::Value(Scalar::String(value)) => value.to_string(),
        _ => return Err(format!("the value of {path} is neither a text, a number nor a section")),
    };
    if path.is_empty() {
        return Err("this is no configuration: it has no keys".into());
    }
    entries.push((path.to_owned(), value));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_are_sorted() {
        assert!(KEYS.is_sorted_by(|(a, _), (b, _)| a < b));
    }

    #[test]
    fn a_file_stands_for_options() {
        let text = "
# mongod.conf, as packages of MongoDB install it
storage:
  dbPath: /var/lib/mongodb
#  engine:
  wiredTiger: { engineConfig: { cacheSizeGB: 0.5 } }
systemLog:
  destination: file
  logAppend: true
net:
  port: 27017
  bindIp: 127.0.0.1
processManagement:
  timeZoneInfo: /usr/share/zoneinfo
security:
  authorization: enabled
#operationProfiling:
replication.replSetName: \"rs0\"
setParameter:
  enableTestCommands: 1
sharding:
";
        let (options, ignored) = read(text).unwrap();
        let expected = [
            "--dbpath=/var/lib/mongodb",
            "--wiredTigerCacheSizeGB=0.5",
            "--port=27017",
            "--bind_ip=127.0.0.1",
            "--auth",
            "--replSet=rs0",
            "--setParameter=enableTestCommands=1",
        ];
        assert_eq!(options, expected);
        assert_eq!(ignored, ["systemLog.destination", "systemLog.logAppend", "processManagement.timeZoneInfo"]);
    }

    #[test]
    fn what_is_not_supported_is_named() {
        for (text, expected) in [
            ("net: { prot: 1 }", "unrecognized option: net.prot"),
            ("sharding: { clusterRole: shardsvr }", "unrecognized option: sharding.clusterRole"),
            ("security: { authorization: maybe }", "\"maybe\" is not supported, only disabled and enabled"),
            ("processManagement: { fork: true }", "processManagement.fork: \"true\" is not supported"),
            ("net: { bindIpAll: 1 }", "net.bindIpAll is true or false"),
            ("net: { bindIp: [a, b] }", "the value of net.bindIp"),
            ("5", "no keys"),
            ("a: [", ""),
            ("net: { port: 1\n net: 2", ""),
        ] {
            let why = read(text).unwrap_err();
            assert!(why.contains(expected), "{text}: {why}");
        }
        assert_eq!(read("").unwrap().0, Vec::<String>::new());
    }
}
