//! Checks of texts: the site, links, comments, subjects of commits.

pub mod commits;
pub mod links;
pub mod prose;
pub mod site;
