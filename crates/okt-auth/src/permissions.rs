//! The permissions that routes and use cases ask for, as types.
//!
//! A use case names the one that it needs in its signature (`&RepoScope<SourceDelete>`), the handler asks for the same one
//! (`Repository<SourceDelete>`), and the line of the route table reads its guard from it. To ask for a permission that
//! nothing has asked for yet, add a line here.

use okt_model::{Action, Object, Permission};

/// A permission as a type.
pub trait Needed: 'static {
    const PERMISSION: Permission;
}

macro_rules! permissions {
    ($($name:ident = $object:ident $action:ident),+ $(,)?) => {
        $(
            #[doc = concat!("[`Object::", stringify!($object), "`], [`Action::", stringify!($action), "`].")]
            pub struct $name;

            impl Needed for $name {
                const PERMISSION: Permission = Permission::new(Object::$object, Action::$action);
            }
        )+

        #[cfg(test)]
        pub(crate) const ALL: &[crate::scope::tests::Asked] = &[$(crate::scope::tests::Asked::of::<$name>()),+];
    };
}

permissions! {
    AiUsageRead = AiUsage Read,
    AuditRead = Audit Read,
    ConceptRead = Concept Read,
    ConceptUpdate = Concept Update,
    DecompositionRead = Decomposition Read,
    FactRead = Fact Read,
    FactUpdate = Fact Update,
    GraphExport = Graph Export,
    GraphRead = Graph Read,
    GraphWrite = Graph Write,
    InvestigationDelete = Investigation Delete,
    InvestigationRead = Investigation Read,
    InvestigationUpdate = Investigation Update,
    InvestigationWrite = Investigation Write,
    JobCancel = Job Cancel,
    JobRead = Job Read,
    MemberManage = Member Manage,
    MemberRead = Member Read,
    PromptsetRead = Promptset Read,
    PromptsetWrite = Promptset Write,
    ReportDelete = Report Delete,
    ReportRead = Report Read,
    ReportUpdate = Report Update,
    ReportWrite = Report Write,
    RepositoryDelete = Repository Delete,
    RepositoryManage = Repository Manage,
    RepositoryRead = Repository Read,
    RepositoryUpdate = Repository Update,
    RepositoryWrite = Repository Write,
    RoleManage = Role Manage,
    RoleRead = Role Read,
    SourceDelete = Source Delete,
    SourceProviderExecute = SourceProvider Execute,
    SourceProviderRead = SourceProvider Read,
    SourceRead = Source Read,
    SourceUpdate = Source Update,
    SourceWrite = Source Write,
    UserManage = User Manage,
    UserRead = User Read,
    WebhookDelete = Webhook Delete,
    WebhookExecute = Webhook Execute,
    WebhookRead = Webhook Read,
    WebhookUpdate = Webhook Update,
    WebhookWrite = Webhook Write,
}
