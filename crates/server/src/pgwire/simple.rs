//! The simple protocol: a text of statements, and the answer of each.

use arrow::datatypes::SchemaRef;
use pgwire::messages::data::RowDescription;

use super::client::{Client, Result};
use super::execute::Answer;
use super::extended::tagged;
use super::frontend::Formats;
use super::rows::{Portion, send};
use super::types::description;

impl Client {
    /// Carries out all statements of a text, up to the first that fails.
    pub async fn simple(&mut self, text: &str) -> Result {
        let statements = self.parse(text).await?;
        if statements.is_empty() {
            self.output.empty_query();
            return Ok(());
        }
        self.check_transaction(&statements)?;
        let plan = self.plan(statements, text).await?;
        for action in plan.actions {
            let answer = self.act(action).await?;
            self.send_answer(answer, &Formats::default(), true).await?;
        }
        Ok(())
    }

    /// Sends what a statement came to, all of it.
    pub async fn send_answer(
        &mut self,
        answer: Answer,
        formats: &Formats,
        describe: bool,
    ) -> Result {
        let tag = match answer {
            Answer::Done(tag) => tag,
            Answer::Rows(mut stream, tag) => {
                if describe {
                    self.describe_rows(&stream.schema().clone(), formats);
                }
                let sent = send(&mut self.output, &mut stream, formats, Portion::ALL).await?;
                tagged(tag, sent.n_rows)
            }
            Answer::Fetch { cursor, count } => {
                if let (true, Some(found)) = (describe, self.cursors.get(&cursor.text)) {
                    let schema = found.stream.schema().clone();
                    self.describe_rows(&schema, formats);
                }
                self.fetch(&cursor, count, formats).await?
            }
            Answer::Copy(copy, stream) => copy.send(&mut self.output, stream).await?,
            Answer::Several(answers) => {
                for answer in answers {
                    // They are rows in memory, and no further answers of several.
                    Box::pin(self.send_answer(answer, formats, describe)).await?;
                }
                return Ok(());
            }
        };
        self.output.complete(&tag);
        Ok(())
    }

    pub fn describe_rows(&mut self, schema: &SchemaRef, formats: &Formats) {
        let fields = schema.fields().iter().enumerate();
        let fields = fields.map(|(i, field)| description(field, i, formats));
        self.output.put(&RowDescription::new(fields.collect()));
    }
}
