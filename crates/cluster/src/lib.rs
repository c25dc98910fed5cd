//! Units of work on Apache Ballista.
