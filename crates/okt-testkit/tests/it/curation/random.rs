//! Many steps in any order, undone in reverse, leave everything as it was.

use std::collections::BTreeMap;

use okt_model::{ConceptId, ConceptMergedBy, CurationId, Error, FactId, NewConceptMerge, RepositoryId};
use okt_store::{Connection, concept_aliases, concept_merges, concepts, contexts, curation};
use okt_testkit::soak::Dice;
use uuid::Uuid;

use crate::curation::repository::{CONTEXTS, Repository};

async fn any(conn: &mut Connection, dice: &mut Dice, query: &'static str) -> Option<Uuid> {
    let all: Vec<Uuid> = sqlx::query_scalar(query).fetch_all(conn).await.unwrap();
    (!all.is_empty()).then(|| dice.pick(&all))
}

async fn any_concept(conn: &mut Connection, dice: &mut Dice) -> ConceptId {
    let all = "SELECT id FROM okt_repository.concepts ORDER BY no";
    any(conn, dice, all).await.unwrap().into()
}

async fn any_context(conn: &mut Connection, repository: RepositoryId, dice: &mut Dice) -> i64 {
    contexts::find(conn, repository, dice.pick(&CONTEXTS)).await.unwrap().unwrap().no
}

/// What a person does; `None` if there was nothing to do.
async fn act(
    conn: &mut Connection,
    of: &Repository,
    dice: &mut Dice,
    number: usize,
) -> okt_pg::Result<(&'static str, Option<CurationId>)> {
    let (repository, decided) = (of.id, of.decided());
    Ok(match dice.below(16) {
        0 | 1 => {
            let merge = NewConceptMerge {
                concept: any_concept(conn, dice).await,
                into: any_concept(conn, dice).await,
                by: ConceptMergedBy::Person,
                job: None,
                person: Some(of.person),
                reason: None,
            };
            ("merge", curation::merge(conn, repository, &merge).await?)
        }
        2..=4 => {
            let concept = any_concept(conn, dice).await;
            let no = concepts::get(conn, repository, concept).await?.unwrap().no;
            let all = concepts::list_facts(conn, repository, no, i64::MAX, 50).await?;
            if all.is_empty() {
                return Ok(("nothing", None));
            }
            let facts: Vec<FactId> = (0..=dice.index(3)).map(|_| all[dice.index(all.len())].1.id).collect();
            let context = any_context(conn, repository, dice).await;
            let name = format!("Part {number}");
            let split = curation::split(conn, repository, decided, concept, (&name, context), &facts).await?;
            ("split", split.map(|split| split.step))
        }
        5 | 6 => {
            let name = match dice.below(4) {
                0 => format!("Name {}", dice.index(24)),
                _ => format!("Renamed {number}"),
            };
            let context =
                if dice.below(3) == 0 { Some(any_context(conn, repository, dice).await) } else { None };
            let concept = any_concept(conn, dice).await;
            // A name that was another's would be found as this one's.
            if name.starts_with("Name") && !owns(conn, repository, concept, &name).await? {
                return Ok(("nothing", None));
            }
            (
                "rename",
                curation::rename(conn, repository, decided, concept, Some(&name), context).await?.flatten(),
            )
        }
        7 => {
            let context = Some(any_context(conn, repository, dice).await);
            let concept = any_concept(conn, dice).await;
            ("move", curation::rename(conn, repository, decided, concept, None, context).await?.flatten())
        }
        8 => {
            let text = format!("Alias {}", dice.index(30));
            let concept = any_concept(conn, dice).await;
            ("add alias", curation::add_alias(conn, repository, decided, concept, &text).await?)
        }
        9 => {
            let concept = any_concept(conn, dice).await;
            let no = concepts::get(conn, repository, concept).await?.unwrap().no;
            let aliases = concept_aliases::list(conn, repository, no, 20).await?;
            if aliases.is_empty() {
                return Ok(("nothing", None));
            }
            let text = aliases[dice.index(aliases.len())].text.clone();
            ("remove alias", curation::remove_alias(conn, repository, decided, concept, &text).await?)
        }
        10 | 11 => {
            let links: Vec<(Uuid, Uuid)> = sqlx::query_as(
                "SELECT c.id, f.id FROM okt_repository.fact_concepts l
                   JOIN okt_repository.concepts c ON c.no = l.concept_no
                   JOIN okt_repository.facts f ON f.no = l.fact_no ORDER BY c.no, f.no",
            )
            .fetch_all(&mut *conn)
            .await?;
            if links.is_empty() {
                return Ok(("nothing", None));
            }
            let (concept, fact) = dice.pick(&links);
            let step = curation::reject_link(conn, repository, decided, concept.into(), fact.into()).await?;
            ("reject link", step)
        }
        12 => {
            let all = "SELECT id FROM okt_repository.facts ORDER BY no";
            let fact = any(conn, dice, all).await.unwrap().into();
            ("reject fact", curation::mark_fact(conn, repository, decided, fact, true).await?)
        }
        _ => {
            let rejected = "SELECT id FROM okt_repository.facts WHERE status = 'rejected' ORDER BY no";
            let Some(fact) = any(conn, dice, rejected).await else { return Ok(("nothing", None)) };
            // Rarely, so that some stay rejected.
            if dice.below(3) > 0 {
                return Ok(("nothing", None));
            }
            ("restore fact", curation::mark_fact(conn, repository, decided, fact.into(), false).await?)
        }
    })
}

/// Whether a machine that files this name finds this concept.
async fn owns(
    conn: &mut Connection,
    repository: RepositoryId,
    concept: ConceptId,
    name: &str,
) -> okt_pg::Result<bool> {
    let number: usize = name.rsplit(' ').next().unwrap().parse().unwrap();
    let found = concepts::find(conn, repository, &[(name, CONTEXTS[number % 3])]).await?;
    let root = concepts::get(conn, repository, concept).await?.unwrap().id;
    Ok(found[0] == Some(root))
}

/// What people may hear when something is not possible.
fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::Conflict(_) | Error::AlreadyExists(_) | Error::UndoFirst(_) | Error::Invalid(_))
}

#[tokio::test]
async fn steps_undone_in_reverse_leave_everything_as_it_was() {
    let count = std::env::var("OKT_CURATION_STEPS").map_or(200, |steps| steps.parse().unwrap());
    let mut dice = Dice::new(22);
    let repository = Repository::filled(&mut dice).await;
    let before = repository.dump().await;
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    let mut in_force: Vec<CurationId> = Vec::new();
    for number in 0..count {
        // The more there are, the more are undone, so that a long run does not end with nothing to decide about.
        if !in_force.is_empty() && (dice.below(5) == 0 || (in_force.len() > 80 && dice.below(2) == 0)) {
            let latest = if dice.below(2) == 0 { in_force.len() } else { in_force.len().min(8) };
            let step = in_force[in_force.len() - 1 - dice.index(latest)];
            match repository.undo(step).await {
                Ok(_) => {
                    in_force.retain(|other| *other != step);
                    *seen.entry("undone").or_default() += 1;
                }
                Err(Error::UndoFirst(later)) => {
                    // They are what it says: later, and in force.
                    let place = |id| in_force.iter().position(|other| *other == id);
                    assert!(later.iter().all(|id| place(*id) > place(step)));
                    *seen.entry("undone too early").or_default() += 1;
                }
                Err(error) => panic!("{error:?}"),
            }
            continue;
        }
        let mut tx = repository.begin().await;
        match act(&mut tx, &repository, &mut dice, number).await {
            Ok((name, step)) => {
                tx.commit().await.unwrap();
                in_force.extend(step);
                *seen.entry(if step.is_some() { name } else { "nothing" }).or_default() += 1;
            }
            Err(error) if is_refusal(&error.0) => *seen.entry("refused").or_default() += 1,
            Err(error) => panic!("{error:?}"),
        }
    }
    println!("{seen:?}, {} in force", in_force.len());
    assert!(seen.len() >= 12, "not everything was tried: {seen:?}");

    let decided = repository.dump().await;
    assert_ne!(decided, before);
    assert_eq!(repository.run_machine().await, (0, 0), "a machine that finds everything once more");
    assert_eq!(repository.dump().await, decided);
    machine_merges_nothing_that_was_split(&repository).await;

    while let Some(step) = in_force.pop() {
        repository.undo(step).await.unwrap();
    }
    assert_eq!(repository.dump().await, before);
    assert_eq!(repository.run_machine().await, (0, 0));
    assert_eq!(repository.dump().await, before);
}

async fn machine_merges_nothing_that_was_split(repository: &Repository) {
    let pairs: Vec<(i64, i64)> =
        sqlx::query_as("SELECT concept_no, other_no FROM okt_repository.parted_concepts")
            .fetch_all(&mut repository.database.connect().await)
            .await
            .unwrap();
    assert!(!pairs.is_empty());
    let mut tx = repository.begin().await;
    for (one, other) in pairs {
        let ids: Vec<Uuid> = sqlx::query_scalar("SELECT id FROM okt_repository.concepts WHERE no = ANY ($1)")
            .bind([one, other])
            .fetch_all(&mut *tx)
            .await
            .unwrap();
        let merge = NewConceptMerge {
            concept: ids[0].into(),
            into: ids[1].into(),
            by: ConceptMergedBy::Judge,
            job: None,
            person: None,
            reason: None,
        };
        assert_eq!(concept_merges::insert(&mut tx, repository.id, &merge).await.unwrap(), None);
    }
}
