//! How statements are planned. A service whose statements are short plans each once, for all its parameters
//! (`plan_cache_mode = force_generic_plan`).

use sqlx::PgConnection;

use crate::error::Result;

/// The next statements of this transaction are planned for their parameters: for a list whose filters may be missing, of
/// which one plan for all would use the index of none.
pub async fn planned_anew(conn: &mut PgConnection) -> Result<()> {
    sqlx::query!("SET LOCAL plan_cache_mode = force_custom_plan").execute(conn).await?;
    Ok(())
}
