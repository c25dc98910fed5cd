//! Names of instances and tables.

use crate::serve::refusal::Refusal;

const TABLE: &str = "a table: projects/PROJECT/instances/INSTANCE/tables/TABLE";
const INSTANCE: &str = "an instance: projects/PROJECT/instances/INSTANCE";

/// The names under which a store is served. It is one instance, whatever its name, unless one is given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Address {
    /// The only project; any by default.
    pub project: Option<String>,
    /// The only instance; any by default.
    pub instance: Option<String>,
}

impl Address {
    /// The table of `projects/P/instances/I/tables/T`.
    ///
    /// # Errors
    /// If it has another form, or is of another project or instance.
    pub(crate) fn table<'a>(&self, name: &'a str) -> Result<&'a str, Refusal> {
        match name.split('/').collect::<Vec<_>>().as_slice() {
            ["projects", project, "instances", instance, "tables", table] if !table.is_empty() => {
                self.check(name, project, instance, TABLE)?;
                Ok(table)
            }
            _ => Err(Refusal::Name { name: name.to_owned(), wanted: TABLE }),
        }
    }

    /// Checks that `name` is `projects/P/instances/I`.
    ///
    /// # Errors
    /// If it has another form, or is of another project or instance.
    pub(crate) fn instance(&self, name: &str) -> Result<(), Refusal> {
        match name.split('/').collect::<Vec<_>>().as_slice() {
            ["projects", project, "instances", instance] => self.check(name, project, instance, INSTANCE),
            _ => Err(Refusal::Name { name: name.to_owned(), wanted: INSTANCE }),
        }
    }

    fn check(&self, name: &str, project: &str, instance: &str, wanted: &'static str) -> Result<(), Refusal> {
        if project.is_empty() || instance.is_empty() {
            return Err(Refusal::Name { name: name.to_owned(), wanted });
        }
        let served_project = self.project.as_deref().unwrap_or(project);
        let served_instance = self.instance.as_deref().unwrap_or(instance);
        if (served_project, served_instance) != (project, instance) {
            let (project, instance) = (served_project.to_owned(), served_instance.to_owned());
            return Err(Refusal::OtherInstance { name: name.to_owned(), project, instance });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_all_their_parts() {
        let any = Address::default();
        assert_eq!(any.table("projects/p/instances/i/tables/T.x_1"), Ok("T.x_1"));
        for wrong in
            ["", "T", "projects/p/instances/i", "projects//instances/i/tables/T", "projects/p/instances/i/tables/"]
        {
            assert!(any.table(wrong).is_err(), "{wrong}");
        }
        assert!(any.instance("projects/p/instances/i").is_ok());
        assert!(any.instance("projects/p/instances/").is_err());
        assert!(any.instance("projects/p/instances/i/tables/T").is_err());
    }

    #[test]
    fn other_instances_are_refused() {
        let own = Address { project: None, instance: Some("i".to_owned()) };
        assert!(own.table("projects/p/instances/i/tables/T").is_ok());
        let refused = own.instance("projects/p/instances/j").unwrap_err();
        assert!(refused.to_string().contains("projects/p/instances/i"), "{refused}");
    }
}
