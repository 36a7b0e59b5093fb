//! Lists of references: many sources in one request.

use axum::extract::State;
use okt_auth::permissions::SourceWrite;
use okt_http::{Code, Json, Part, Problem, Upload};
use okt_model::{Error, InvestigationId};
use okt_wire::source_import::ImportedList;
use utoipa::ToSchema;

use crate::Api;
use crate::extract::Repository;

/// As much as is read of a list.
const LONGEST: usize = 4 * 1024 * 1024;

/// A list of references.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its form is told; it is read piece by piece")]
pub struct ReferenceList {
    /// `BibTeX`, RIS or CSL-JSON, up to 4 MiB and 1,000 entries.
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
}

/// Add the sources of a list of references: `BibTeX`, RIS or CSL-JSON.
///
/// Each entry that names a DOI, an address or the number of a paper becomes a source, and the answer says for each what became
/// of it. Sending the same list again adds nothing.
#[utoipa::path(post, path = "/api/v1/repositories/{repoID}/sources/import", tag = "Sources",
    operation_id = "importSources", request_body(content = ReferenceList, content_type = "multipart/form-data"),
    responses((status = 200, body = ImportedList, description = "The result for each entry")))]
pub async fn import(
    State(api): State<Api>,
    repository: Repository<SourceWrite>,
    mut form: Upload,
) -> Result<Json<ImportedList>, Problem> {
    let mut list = None;
    while let Some(part) = form.next().await? {
        if part.name != "file" || list.is_some() {
            return Err(Error::invalid(part.name, "is not a part of this form").into());
        }
        list = Some(List::read(part, Vec::new()).await?);
    }
    let list = list.ok_or_else(|| Error::invalid("file", "must be given"))?;
    Ok(Json(list.import(&api, &repository, None).await?))
}

/// A list as it came.
pub(crate) struct List {
    text: String,
    file_name: Option<String>,
    content_type: Option<String>,
}

impl List {
    /// `bytes` are those that were read already.
    pub(crate) async fn read(mut part: Part, mut bytes: Vec<u8>) -> Result<Self, Problem> {
        loop {
            if bytes.len() > LONGEST {
                return Err(Problem::new(Code::TooLarge, format!("the limit is {LONGEST} bytes")));
            }
            let Some(piece) = part.chunk().await? else { break };
            bytes.extend_from_slice(&piece);
        }
        let text = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'));
        let text = text.ok_or_else(|| Error::invalid("file", "must be text in UTF-8"))?;
        Ok(Self { text, file_name: part.file_name.take(), content_type: part.content_type.take() })
    }

    pub(crate) async fn import(
        self,
        api: &Api,
        repository: &Repository<SourceWrite>,
        investigation: Option<InvestigationId>,
    ) -> Result<ImportedList, Problem> {
        let Self { text, file_name, content_type } = self;
        let imported =
            api.app.import_references(&repository.0, text, file_name, content_type, investigation).await?;
        Ok(imported.into())
    }
}
