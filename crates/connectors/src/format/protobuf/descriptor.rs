//! Message types from files, compiled or not, and from a registry.

use std::path::Path;

use prost_reflect::{DescriptorPool, FileDescriptor, MessageDescriptor};
use protox::Compiler;
use protox::file::{ChainFileResolver, File, FileResolver, GoogleFileResolver};

/// The file with the types, and whatever it imports.
#[derive(Debug)]
pub struct Types {
    pool: DescriptorPool,
    /// Files that define what is asked for, not only what that needs.
    files: Vec<FileDescriptor>,
}

/// From a `.proto` file or a set of descriptors.
pub fn of_file(path: &str) -> Result<Types, String> {
    let file = Path::new(path);
    if file.extension().is_some_and(|e| e == "proto") {
        let name = file.file_name().and_then(|name| name.to_str());
        let name = name.ok_or("its name is not UTF-8")?;
        let parent = file.parent().filter(|p| !p.as_os_str().is_empty());
        let mut compiler = Compiler::new([parent.unwrap_or(Path::new("."))]).map_err(said)?;
        compiler.open_file(name).map_err(said)?;
        return of_pool(compiler.descriptor_pool(), Some(name));
    }
    let bytes = std::fs::read(path).map_err(|e| e.to_string())?;
    let pool = DescriptorPool::decode(bytes.as_slice())
        .map_err(|e| format!("it is neither a .proto file nor a set of descriptors: {e}"))?;
    of_pool(pool, None)
}

/// From the text of a schema and those of the files that it imports.
pub fn of_text(text: &str, references: &[(String, String)]) -> Result<Types, String> {
    const NAME: &str = "schema.proto";
    let mut sources = Sources(vec![(NAME.to_string(), text.to_string())]);
    sources.0.extend_from_slice(references);
    let mut resolver = ChainFileResolver::new();
    resolver.add(sources);
    resolver.add(GoogleFileResolver::new());
    let mut compiler = Compiler::with_file_resolver(resolver);
    compiler.open_file(NAME).map_err(said)?;
    of_pool(compiler.descriptor_pool(), Some(NAME))
}

fn of_pool(pool: DescriptorPool, name: Option<&str>) -> Result<Types, String> {
    let files: Vec<_> = pool
        .files()
        .filter(|file| match name {
            Some(name) => file.name() == name,
            None => !file.name().starts_with("google/protobuf/"),
        })
        .collect();
    Ok(Types { pool, files })
}

/// The compiler's words, on one line.
fn said(error: protox::Error) -> String {
    let text = error.to_string();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The message type called `name`, or the only one.
pub fn message(types: &Types, name: Option<&str>) -> Result<MessageDescriptor, String> {
    let all: Vec<_> = types
        .files
        .iter()
        .flat_map(FileDescriptor::messages)
        .collect();
    let listed = || {
        let names: Vec<_> = all.iter().map(|m| format!("'{}'", m.full_name())).collect();
        names.join(", ")
    };
    match (name, all.as_slice()) {
        (Some(name), _) => types
            .pool
            .get_message_by_name(name)
            .ok_or_else(|| format!("it has no message type '{name}'; it has {}", listed())),
        (None, [only]) => Ok(only.clone()),
        (None, []) => Err("it defines no message type".to_string()),
        (None, _) => Err(format!(
            "say which message type with protobuf.message_name: {}",
            listed()
        )),
    }
}

/// The message type at a path of indexes: the file's third, in that the first, ….
pub fn at_path(types: &Types, path: &[usize]) -> Option<MessageDescriptor> {
    let (first, rest) = path.split_first()?;
    let mut found = types.files.first()?.messages().nth(*first)?;
    for index in rest {
        let inner = declared(&found).nth(*index)?;
        found = inner;
    }
    Some(found)
}

/// The message types that the text of another declares: those that stand for entries of maps are in no text, so
/// Confluent's serializers do not count them.
fn declared(message: &MessageDescriptor) -> impl Iterator<Item = MessageDescriptor> + '_ {
    message
        .child_messages()
        .filter(|inner| !inner.is_map_entry())
}

/// The path at which a message type is found again.
pub fn path_of(message: &MessageDescriptor) -> Vec<usize> {
    let (mut path, same) = match message.parent_message() {
        Some(parent) => (
            path_of(&parent),
            declared(&parent).position(|m| m == *message),
        ),
        None => {
            let file = message.parent_file();
            (Vec::new(), file.messages().position(|m| m == *message))
        }
    };
    path.extend(same);
    path
}

struct Sources(Vec<(String, String)>);

impl FileResolver for Sources {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        match self.0.iter().find(|(known, _)| known == name) {
            Some((name, text)) => File::from_source(name, text),
            None => Err(protox::Error::file_not_found(name)),
        }
    }
}
