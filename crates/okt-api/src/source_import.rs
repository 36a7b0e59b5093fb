//! Lists of references: many sources in one request.

use axum::extract::State;
use okt_app::{ImportOutcome, Imported};
use okt_http::{Code, Json, Problem, Upload};
use okt_model::Error;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::Api;
use crate::repositories::Repository;

/// As much as is read of a list.
const LONGEST: usize = 4 * 1024 * 1024;

/// A list of references.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its form is told; it is read piece by piece")]
pub struct ReferenceList {
    /// `BibTeX`, RIS or CSL-JSON, up to 4 MiB and 1,000 entries.
    #[schema(format = Binary, content_media_type = "application/octet-stream")]
    file: Vec<u8>,
}

/// What became of a list of references.
#[derive(Serialize, ToSchema)]
pub struct ImportedList {
    added: usize,
    existing: usize,
    skipped: usize,
    invalid: usize,
    /// Every entry, in the order of the list.
    data: Vec<ImportedRow>,
}

/// What became of one entry.
#[derive(Serialize, ToSchema)]
struct ImportedRow {
    /// Its place in the list, from 1.
    row: usize,
    /// Its citation key, or its place.
    #[schema(example = "lovelace1843")]
    label: String,
    /// `added`; `existing`: the repository had it; `skipped`: nothing to fetch it by; `invalid`: it can't be read.
    #[schema(example = "added")]
    outcome: &'static str,
    #[schema(required)]
    source_id: Option<Uuid>,
    #[schema(required)]
    job_id: Option<Uuid>,
    /// Why it was not added.
    #[schema(required)]
    message: Option<String>,
}

/// Add the sources of a list of references: `BibTeX`, RIS or CSL-JSON.
///
/// Each entry that names a DOI, an address or the number of a paper becomes a source, and the answer says for each what became
/// of it. Sending the same list again adds nothing.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/sources/import", tag = "Sources",
    params(("repoID" = String, Path, description = "Its id or its slug")),
    request_body(content = ReferenceList, content_type = "multipart/form-data"),
    responses((status = 200, body = ImportedList, description = "What became of each entry")))]
pub async fn import(
    State(api): State<Api>,
    repository: Repository,
    mut form: Upload,
) -> Result<Json<ImportedList>, Problem> {
    let mut list = None;
    while let Some(mut part) = form.next().await? {
        if part.name != "file" || list.is_some() {
            return Err(Error::invalid(part.name, "is not a part of this form").into());
        }
        let mut bytes = Vec::new();
        while let Some(piece) = part.chunk().await? {
            if bytes.len() + piece.len() > LONGEST {
                return Err(Problem::new(Code::TooLarge, format!("the limit is {LONGEST} bytes")));
            }
            bytes.extend_from_slice(&piece);
        }
        let text = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
        let text = text.ok_or_else(|| Error::invalid("file", "must be text in UTF-8"))?;
        list = Some((text, part.file_name.take(), part.content_type.take()));
    }
    let (text, file_name, content_type) = list.ok_or_else(|| Error::invalid("file", "must be given"))?;
    let imported = api.app.import_references(&repository.0, text, file_name, content_type).await?;
    Ok(Json(imported.into()))
}

impl From<Vec<Imported>> for ImportedList {
    fn from(imported: Vec<Imported>) -> Self {
        let rows = imported.into_iter().zip(1..).map(|(imported, row)| {
            let (outcome, ids, message) = match imported.outcome {
                ImportOutcome::Added(source, job) => ("added", Some((source, job)), None),
                ImportOutcome::Existing(source, job) => ("existing", Some((source, job)), None),
                ImportOutcome::Skipped(why) => ("skipped", None, Some(why)),
                ImportOutcome::Invalid(why) => ("invalid", None, Some(why)),
            };
            let (source_id, job_id) = ids.map(|(source, job)| (source.uuid(), job.uuid())).unzip();
            ImportedRow { row, label: imported.label, outcome, source_id, job_id, message }
        });
        let data: Vec<ImportedRow> = rows.collect();
        let count = |outcome| data.iter().filter(|row| row.outcome == outcome).count();
        Self {
            added: count("added"),
            existing: count("existing"),
            skipped: count("skipped"),
            invalid: count("invalid"),
            data,
        }
    }
}
