//! Rows of `okt_system.repository_settings`: one for each repository.

use okt_model::{AskSettings, ContentHash, Error, Money, RepositoryId, RepositorySettings, Stages};
use sqlx::PgConnection;

use crate::words::word;
use okt_pg::Result;

/// What a new repository starts with.
#[tracing::instrument(level = "debug", name = "db.repository_settings.insert", skip_all)]
pub async fn insert(
    conn: &mut PgConnection,
    repository: RepositoryId,
    search: &[String],
    resolution: &[String],
) -> Result<()> {
    sqlx::query!(
        "INSERT INTO okt_system.repository_settings (repository_id, search, resolution) VALUES ($1, $2, $3)",
        repository.uuid(),
        search,
        resolution,
    )
    .execute(conn)
    .await?;
    Ok(())
}

#[tracing::instrument(level = "debug", name = "db.repository_settings.find", skip_all)]
pub async fn find(conn: &mut PgConnection, repository: RepositoryId) -> Result<Option<RepositorySettings>> {
    select(conn, repository, false).await
}

/// As [`find`]; nobody else changes them until the end of the transaction.
#[tracing::instrument(level = "debug", name = "db.repository_settings.lock", skip_all)]
pub async fn lock(conn: &mut PgConnection, repository: RepositoryId) -> Result<Option<RepositorySettings>> {
    select(conn, repository, true).await
}

async fn select(
    conn: &mut PgConnection,
    repository: RepositoryId,
    lock: bool,
) -> Result<Option<RepositorySettings>> {
    if lock {
        let locked = sqlx::query!(
            "SELECT repository_id FROM okt_system.repository_settings WHERE repository_id = $1 FOR UPDATE",
            repository.uuid(),
        );
        locked.fetch_optional(&mut *conn).await?;
    }
    let row = sqlx::query!(
        "SELECT s.search, s.resolution, s.auto_contribute, s.registry_id, s.push_level, s.allowed_models,
                s.accepted_promptset_hashes, s.promptset_hash, s.monthly_micro_usd, s.refinement, s.summarization, s.synthesis, s.image_extraction,
                s.unmapped_contexts, s.trust, s.trusted_keys, s.ask_viewers, s.ask_person_micro_usd
           FROM okt_system.repository_settings s
           JOIN okt_system.repositories r ON r.id = s.repository_id AND r.state = 'active'
          WHERE s.repository_id = $1",
        repository.uuid(),
    )
    .fetch_optional(conn)
    .await?;
    row.map(|row| {
        Ok(RepositorySettings {
            search: row.search,
            resolution: row.resolution,
            auto_contribute: row.auto_contribute,
            registry_id: row.registry_id,
            push_level: row.push_level.parse().unwrap_or_default(),
            allowed_models: row.allowed_models,
            trust: word("repository_settings.trust", &row.trust)?,
            trusted_keys: row.trusted_keys,
            accepted_promptset_hashes: row.accepted_promptset_hashes,
            promptset_hash: row
                .promptset_hash
                .map(|hash| ContentHash::try_from(hash.as_slice()).map_err(Error::internal))
                .transpose()?,
            monthly_usd: row.monthly_micro_usd.map(Money::from_micros),
            stages: Stages {
                refinement: row.refinement,
                summarization: row.summarization,
                synthesis: row.synthesis,
                image_extraction: row.image_extraction,
            },
            unmapped_contexts: word("repository_settings.unmapped_contexts", &row.unmapped_contexts)?,
            ask: AskSettings {
                viewers: row.ask_viewers,
                per_person_per_day: row.ask_person_micro_usd.map(Money::from_micros),
            },
        })
    })
    .transpose()
}

/// All of them, as they were read and changed under [`lock`].
#[tracing::instrument(level = "debug", name = "db.repository_settings.update", skip_all)]
pub async fn update(
    conn: &mut PgConnection,
    repository: RepositoryId,
    settings: &RepositorySettings,
) -> Result<()> {
    sqlx::query!(
        "UPDATE okt_system.repository_settings
            SET search = $2, resolution = $3, auto_contribute = $4, registry_id = $5, push_level = $6,
                allowed_models = $7, accepted_promptset_hashes = $8, monthly_micro_usd = $9, refinement = $10,
                summarization = $11, synthesis = $12, image_extraction = $13, promptset_hash = $14,
                unmapped_contexts = $15, trust = $16, trusted_keys = $17, ask_viewers = $18,
                ask_person_micro_usd = $19
          WHERE repository_id = $1",
        repository.uuid(),
        &settings.search,
        &settings.resolution,
        settings.auto_contribute,
        settings.registry_id,
        settings.push_level.as_str(),
        settings.allowed_models.as_deref(),
        &settings.accepted_promptset_hashes,
        settings.monthly_usd.map(Money::micros),
        settings.stages.refinement,
        settings.stages.summarization,
        settings.stages.synthesis,
        settings.stages.image_extraction,
        settings.promptset_hash.map(|hash| hash.0.to_vec()),
        settings.unmapped_contexts.as_str(),
        settings.trust.as_str(),
        &settings.trusted_keys,
        settings.ask.viewers,
        settings.ask.per_person_per_day.map(Money::micros),
    )
    .execute(conn)
    .await?;
    Ok(())
}
