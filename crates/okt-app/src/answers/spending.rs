//! What a person has spent on answers that were stopped.

use okt_auth::RepoAccess;
use okt_model::{Result, Subject, SubjectKind};
use okt_store::{ai_calls, answers};

use crate::App;

impl App {
    /// Writes down what answers of the caller have cost that were stopped or deleted a while ago: a call that was on the wire then is told of
    /// later, and until that is sure they count with the most that they may cost.
    pub(super) async fn settle_spending(&self, scope: &RepoAccess) -> Result<()> {
        let (repository, person) = (scope.repository(), scope.caller().user());
        let mut tx = self.databases().begin_to_read(scope.database(), repository).await?;
        let open = answers::list_unsettled(&mut tx, repository, person, self.ai().longest_call()).await?;
        tx.commit().await?;
        if open.is_empty() {
            return Ok(());
        }
        let mut costs = Vec::new();
        let mut conn = self.databases().acquire_system().await?;
        for id in open {
            let subject = Subject::new(SubjectKind::Question, id.uuid());
            let cost = ai_calls::cost_of(&mut conn, repository, subject).await?;
            costs.push((id, cost.usd));
        }
        drop(conn);
        let mut tx = self.databases().begin(scope.database(), repository).await?;
        answers::settle(&mut tx, repository, person, &costs).await?;
        tx.commit().await?;
        Ok(())
    }
}
