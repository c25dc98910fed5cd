//! Rules of schema design, checked on the tables of a job file.
