//! Every statement that stands whole in the source, also one that no test executes, is a statement for the schema of
//! either database program.
//!
//! Statements are found by their first word, in string literals, in `concat!` and in macros that give such text. Those
//! that are put together while the program runs are not whole in the source; the tests of their callers execute them.

use std::collections::HashMap;
use std::path::Path;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use sqlx::{AnyConnection, AssertSqlSafe, Connection as _};

use crate::support::database::TestDatabase;

const FIRST_WORDS: [&str; 5] = ["SELECT", "INSERT", "UPDATE", "DELETE", "WITH"];
/// What only one of the database programs knows.
const OF_SQLITE: [&str; 2] = ["sqlite_", "pragma_"];
const OF_POSTGRES: [&str; 2] = ["pg_", "regclass"];
/// PostgreSQL can't tell the type of a parameter, or of an operator's two, which is known when they are bound.
const TYPES_ARE_BOUND: [&str; 2] = ["42P18", "42725"];

#[tokio::test]
async fn every_statement_is_one_for_the_schema() {
    let database = TestDatabase::new().await;
    database.open().await.close().await;
    let is_sqlite = database.url().starts_with("sqlite:");
    let (prefix, foreign) = if is_sqlite {
        ("EXPLAIN", OF_POSTGRES)
    } else {
        ("PREPARE checked AS", OF_SQLITE)
    };
    let mut connection = AnyConnection::connect(database.url()).await.unwrap();
    let statements = whole_statements();
    assert!(statements.len() > 250, "only {} found", statements.len());
    let mut wrong = Vec::new();
    for sql in statements {
        if foreign.iter().any(|word| sql.contains(word)) {
            continue;
        }
        let prepare = AssertSqlSafe(format!("{prefix} {sql}"));
        match sqlx::raw_sql(prepare).execute(&mut connection).await {
            Ok(_) if is_sqlite => {}
            Ok(_) => {
                let end = sqlx::raw_sql("DEALLOCATE checked");
                end.execute(&mut connection).await.unwrap();
            }
            Err(error) => {
                let code = error
                    .as_database_error()
                    .and_then(sqlx::error::DatabaseError::code);
                if !code.is_some_and(|code| TYPES_ARE_BOUND.contains(&&*code)) {
                    wrong.push(format!("{error}:\n{sql}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// The ledger's statements, from its source without its tests.
fn whole_statements() -> Vec<String> {
    let mut files = Vec::new();
    read_sources(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src/db"),
        &mut files,
    );
    let mut shared = Macros::default();
    files.iter().for_each(|file| shared.read(file.clone()));
    let mut statements = Vec::new();
    for file in files {
        // Those of the same name in other files are others.
        let mut macros = shared.clone();
        macros.read(file.clone());
        macros.find_statements(file, false, &mut statements);
    }
    statements
}

fn read_sources(folder: &Path, files: &mut Vec<TokenStream>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_sources(&path, files);
        } else if !path.ends_with("tests.rs") {
            let source = std::fs::read_to_string(&path).unwrap();
            let tests = ["#[cfg(test)]\nmod ", "#[cfg(test)]\npub"];
            let ends = tests.iter().filter_map(|begin| source.find(begin));
            let source = &source[..ends.min().unwrap_or(source.len())];
            files.push(source.parse().unwrap());
        }
    }
}

/// An arm of a macro: its parameters, and what it gives.
type Arm = (Vec<String>, Vec<TokenTree>);

/// Macros that may give text, by their names.
#[derive(Clone, Default)]
struct Macros(HashMap<String, Vec<Arm>>);

impl Macros {
    fn read(&mut self, source: TokenStream) {
        let tokens: Vec<TokenTree> = source.into_iter().collect();
        for window in tokens.windows(4) {
            if let [
                TokenTree::Ident(keyword),
                _,
                TokenTree::Ident(name),
                TokenTree::Group(arms),
            ] = window
                && keyword == "macro_rules"
            {
                self.0.insert(name.to_string(), arms_of(arms));
            }
        }
    }

    /// The text with which these tokens begin, and how many of them make it.
    fn text(
        &self,
        tokens: &[TokenTree],
        values: &HashMap<&str, String>,
    ) -> Option<(String, usize)> {
        match tokens {
            [TokenTree::Literal(literal), ..] => Some((literal_text(&literal.to_string())?, 1)),
            [TokenTree::Punct(dollar), TokenTree::Ident(name), ..]
                if dollar.as_char() == '$' && name != "crate" =>
            {
                Some((values.get(&*name.to_string())?.clone(), 2))
            }
            _ => self.expand(tokens, values),
        }
    }

    /// The same for a macro, by its name or its path.
    fn expand(
        &self,
        tokens: &[TokenTree],
        values: &HashMap<&str, String>,
    ) -> Option<(String, usize)> {
        let is_path = |token: &&TokenTree| match token {
            TokenTree::Ident(_) => true,
            TokenTree::Punct(punct) => matches!(punct.as_char(), ':' | '$'),
            _ => false,
        };
        let path = tokens.iter().take_while(is_path).count();
        let [.., TokenTree::Ident(name)] = &tokens[..path] else {
            return None;
        };
        let [TokenTree::Punct(bang), TokenTree::Group(arguments), ..] = &tokens[path..] else {
            return None;
        };
        if bang.as_char() != '!' {
            return None;
        }
        let arguments: Vec<TokenTree> = arguments.stream().into_iter().collect();
        let arguments: Option<Vec<String>> = arguments
            .split(|token| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ','))
            .filter(|argument| !argument.is_empty())
            .map(|argument| self.whole_text(argument, values))
            .collect();
        let (arguments, name) = (arguments?, name.to_string());
        if name == "concat" {
            return Some((arguments.concat(), path + 2));
        }
        let mut arms = self.0.get(&name)?.iter();
        let (parameters, body) = arms.find(|(names, _)| names.len() == arguments.len())?;
        let values = parameters
            .iter()
            .map(String::as_str)
            .zip(arguments)
            .collect();
        Some((self.whole_text(body, &values)?, path + 2))
    }

    fn whole_text(&self, tokens: &[TokenTree], values: &HashMap<&str, String>) -> Option<String> {
        let (text, length) = self.text(tokens, values)?;
        (length == tokens.len()).then_some(text)
    }

    /// Those of a group may be pieces of a statement that is put together.
    fn find_statements(&self, source: TokenStream, are_pieces: bool, found: &mut Vec<String>) {
        let tokens: Vec<TokenTree> = source.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            if let Some((text, length)) = self.text(&tokens[at..], &HashMap::new()) {
                let statements = text.split(';').map(str::trim);
                let whole = statements.filter(|sql| !are_pieces && is_statement(sql));
                found.extend(whole.map(str::to_owned));
                at += length;
                continue;
            }
            match &tokens[at] {
                TokenTree::Ident(keyword) if keyword == "macro_rules" => at += 3,
                TokenTree::Group(group) => {
                    let are_pieces = takes_pieces(&tokens[..at], group);
                    self.find_statements(group.stream(), are_pieces, found);
                }
                _ => {}
            }
            at += 1;
        }
    }
}

fn arms_of(arms: &Group) -> Vec<Arm> {
    let groups: Vec<Group> = arms
        .stream()
        .into_iter()
        .filter_map(|token| match token {
            TokenTree::Group(group) => Some(group),
            _ => None,
        })
        .collect();
    let arm = |pair: &[Group]| {
        let pattern: Vec<TokenTree> = pair[0].stream().into_iter().collect();
        let name = |two: &[TokenTree]| match two {
            [TokenTree::Punct(dollar), TokenTree::Ident(name)] if dollar.as_char() == '$' => {
                Some(name.to_string())
            }
            _ => None,
        };
        let parameters = pattern.windows(2).filter_map(name).collect();
        (parameters, pair[1].stream().into_iter().collect())
    };
    groups.chunks_exact(2).map(arm).collect()
}

/// What a literal says in `concat!`; only of numbers and of strings without rare escapes.
fn literal_text(literal: &str) -> Option<String> {
    let Some(inner) = literal.strip_prefix('"') else {
        return literal
            .starts_with(char::is_numeric)
            .then(|| literal.to_owned());
    };
    let mut lines = inner.strip_suffix('"')?.split("\\\n");
    let first = lines.next()?.to_owned();
    let joined = lines.fold(first, |text, line| text + line.trim_start());
    Some(joined.replace("\\\"", "\""))
}

fn is_statement(text: &str) -> bool {
    let first = text.split_whitespace().next();
    first.is_some_and(|first| FIRST_WORDS.contains(&first)) && text.contains(' ')
}

/// Whether what stands before a group makes its text a piece of a statement: `Statement::new`, `push`, `next`, `format!`.
fn takes_pieces(before: &[TokenTree], group: &Group) -> bool {
    let before = match before {
        [before @ .., TokenTree::Punct(bang)] if bang.as_char() == '!' => before,
        all => all,
    };
    let takes = ["new", "push", "next", "format"];
    group.delimiter() == Delimiter::Parenthesis
        && matches!(before, [.., TokenTree::Ident(name)] if takes.iter().any(|one| name == one))
}
