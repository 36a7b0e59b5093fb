//! The role that a service works as where its login could pass row-level security.
//!
//! PostgreSQL lets superusers past it. When we log in as one, the service works as a role that can't pass; this makes the
//! role and gives it the rows, not the tables. An ordinary owner needs no second role, because policies can be forced on
//! owners.

use okt_model::Error;
use sqlx::PgConnection;

use crate::error::Result;
use crate::migrate::{Schema, execute};

/// `role` is not from outside: it stands in statements as it is.
pub(crate) async fn prepare(conn: &mut PgConnection, schemas: &[Schema], role: &'static str) -> Result<()> {
    let (superuser, passes, exists): (bool, bool, bool) = sqlx::query_as(
        "SELECT rolsuper, rolsuper OR rolbypassrls, EXISTS (SELECT FROM pg_roles WHERE rolname = $1)
           FROM pg_roles WHERE rolname = current_user",
    )
    .bind(role)
    .fetch_one(&mut *conn)
    .await?;
    if !passes {
        return Ok(());
    }
    take_on(conn, role, superuser, exists).await.map_err(|error| {
        Error::Operator(format!(
            "the login may pass row-level security but not take on the role {role}: let it own the \
             database without BYPASSRLS, or have an administrator create the role and grant it ({})",
            std::error::Error::source(&error).map_or_else(String::new, ToString::to_string),
        ))
    })?;
    for schema in schemas.iter().map(Schema::name) {
        if lacks_grants(conn, role, schema).await? {
            let statements = [
                format!("GRANT USAGE ON SCHEMA {schema} TO {role}"),
                format!("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}"),
                format!("REVOKE INSERT, UPDATE, DELETE ON {schema}.migrations FROM {role}"),
                format!("GRANT USAGE, UPDATE ON ALL SEQUENCES IN SCHEMA {schema} TO {role}"),
            ];
            execute(conn, &statements.join("; ")).await?;
        }
    }
    Ok(())
}

async fn take_on(conn: &mut PgConnection, role: &str, superuser: bool, exists: bool) -> Result<()> {
    if !exists {
        // Roles belong to the whole server: another database's migrator may be making the same one right now.
        execute(
            conn,
            &format!(
                "DO $$ BEGIN CREATE ROLE {role} NOLOGIN;
                 EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"
            ),
        )
        .await?;
    }
    if !superuser {
        execute(conn, &format!("GRANT {role} TO CURRENT_USER")).await?;
    }
    Ok(())
}

/// Asked of the catalogue every time: whoever made a table may have died before granting it.
async fn lacks_grants(conn: &mut PgConnection, role: &str, schema: &str) -> Result<bool> {
    Ok(sqlx::query_scalar(
        "SELECT NOT has_schema_privilege($1, $2, 'USAGE') OR EXISTS (
                SELECT FROM pg_class c
                 WHERE c.relnamespace = $2::regnamespace AND c.relname <> 'migrations'
                   AND CASE c.relkind WHEN 'S' THEN NOT has_sequence_privilege($1, c.oid, 'UPDATE')
                                      WHEN 'r' THEN NOT has_table_privilege($1, c.oid, 'DELETE')
                                      WHEN 'p' THEN NOT has_table_privilege($1, c.oid, 'DELETE')
                                      ELSE false END)",
    )
    .bind(role)
    .bind(schema)
    .fetch_one(conn)
    .await?)
}
