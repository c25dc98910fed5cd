//! Bounds the depth of a statement before it is parsed.
//!
//! The parser bounds what is nested in parentheses, but not what is chained: it builds `a + b + c` in a loop, as a tree
//! that is as deep as it has operators, and whatever visits the tree recurses. [`check_depth`] estimates the depth from
//! the tokens, by the precedence of operators. Chains of `AND` and `OR` are no deep trees (see
//! [`dialect`](super::dialect)), but DataFusion makes chains of the filters that they stand for, so their number is
//! bounded, too.

use datafusion::error::Result;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::error::{SqlError, external};

/// The deepest chain of operators, or of relations, that is planned.
pub(crate) const MAX_DEPTH: usize = 1_000;
/// Deepest nesting of parentheses. The parser allows less where it parses more than an expression in each.
pub(crate) const MAX_NESTING: usize = 50;
/// The most operators `AND` and `OR` that a statement may have.
pub(crate) const MAX_LOGICAL_OPERATORS: usize = 10_000;

/// Names in a row, joined by periods, that are a column and not fields of fields.
const NAMES_OF_COLUMN: usize = 4;
/// The number of classes of operators; class 0 binds most tightly.
const CLASSES: usize = 6;

/// Refuses a statement that is too deep to be planned.
///
/// # Errors
/// [`SqlError::TooDeep`].
pub(crate) fn check_depth(tokens: &[TokenWithSpan]) -> Result<()> {
    let mut statement = OpenStatement { levels: vec![Level::default()], ..OpenStatement::default() };

    for TokenWithSpan { token, span } in tokens {
        if matches!(token, Token::Whitespace(_)) {
            continue;
        }
        statement.add(token);
        if let Some((what, limit)) = statement.exceeded() {
            let at = Some((span.start.line, span.start.column));
            return Err(external(SqlError::TooDeep { what, limit, at }));
        }
    }
    Ok(())
}

/// What a token adds to the tree of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Open(Bracket),
    Close(Bracket),
    /// Parent of what precedes and follows it; the class, 0 the tightest.
    Operator(usize),
    Period,
    Between,
    And,
    Or,
    Comma,
    /// The first word of a clause or of a branch.
    Clause,
    From,
    /// A join, a set operation, or a common table expression.
    Relation,
    Operand,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Bracket {
    #[default]
    Parenthesis,
    Subscript,
    Case,
}

fn role_of(token: &Token) -> Role {
    match token {
        Token::LParen | Token::LBrace => Role::Open(Bracket::Parenthesis),
        Token::RParen | Token::RBrace => Role::Close(Bracket::Parenthesis),
        Token::LBracket => Role::Open(Bracket::Subscript),
        Token::RBracket => Role::Close(Bracket::Subscript),
        Token::Comma => Role::Comma,
        Token::Period => Role::Period,
        Token::SemiColon => Role::Clause,
        Token::VerticalBarRightAngleBracket => Role::Relation,
        Token::Word(word) => role_of_keyword(word.keyword),
        Token::DoubleColon => Role::Operator(0),
        Token::Caret => Role::Operator(1),
        Token::Mul | Token::Div | Token::Mod | Token::DuckIntDiv => Role::Operator(2),
        Token::Plus | Token::Minus => Role::Operator(3),
        Token::Eq | Token::DoubleEq | Token::Neq | Token::Lt | Token::Gt | Token::LtEq | Token::GtEq => {
            Role::Operator(5)
        }
        Token::StringConcat
        | Token::Ampersand
        | Token::Pipe
        | Token::Sharp
        | Token::ShiftLeft
        | Token::ShiftRight
        | Token::Overlap
        | Token::Arrow
        | Token::LongArrow
        | Token::HashArrow
        | Token::HashLongArrow
        | Token::AtArrow
        | Token::ArrowAt
        | Token::HashMinus
        | Token::AtQuestion
        | Token::AtAt
        | Token::Question
        | Token::QuestionAnd
        | Token::QuestionPipe
        | Token::Spaceship
        | Token::CaretAt
        | Token::Tilde
        | Token::TildeAsterisk
        | Token::ExclamationMarkTilde
        | Token::ExclamationMarkTildeAsterisk
        | Token::DoubleTilde
        | Token::DoubleTildeAsterisk
        | Token::ExclamationMarkDoubleTilde
        | Token::ExclamationMarkDoubleTildeAsterisk
        | Token::ExclamationMark
        | Token::DoubleExclamationMark
        | Token::Colon
        | Token::CustomBinaryOperator(_) => Role::Operator(4),
        _ => Role::Operand,
    }
}

fn role_of_keyword(keyword: Keyword) -> Role {
    use Keyword as K;
    match keyword {
        K::AND => Role::And,
        K::OR => Role::Or,
        K::BETWEEN => Role::Between,
        K::CASE => Role::Open(Bracket::Case),
        K::END => Role::Close(Bracket::Case),
        K::FROM => Role::From,
        K::SELECT | K::WHERE | K::GROUP | K::HAVING | K::QUALIFY | K::ORDER | K::BY | K::LIMIT | K::ON => Role::Clause,
        K::WHEN | K::THEN | K::ELSE => Role::Clause,
        K::AS | K::JOIN | K::UNION | K::EXCEPT | K::INTERSECT | K::MINUS => Role::Relation,
        K::AT | K::COLLATE => Role::Operator(1),
        K::DIV => Role::Operator(2),
        K::IN | K::IS | K::LIKE | K::ILIKE | K::RLIKE | K::REGEXP | K::SIMILAR | K::NOT | K::XOR => Role::Operator(5),
        _ => Role::Operand,
    }
}

/// What is known of a statement up to one of its tokens.
#[derive(Debug, Default)]
struct OpenStatement {
    /// The statement itself, and the brackets that are open in it.
    levels: Vec<Level>,
    logical_operators: usize,
    /// Depth of the innermost level, of those in which it lies.
    depth: usize,
    /// Whether the last token ends an operand, so that an operator is not a prefix.
    after_operand: bool,
    /// Whether the last token was `AS`, so that a name follows.
    after_as: bool,
    /// Periods since a token that is neither a period nor a name.
    periods: usize,
}

impl OpenStatement {
    fn add(&mut self, token: &Token) {
        let role = role_of(token);
        let is_name = role == Role::Operand;
        self.periods = if role == Role::Period || is_name { self.periods } else { 0 };
        // `WITH name AS (` is a relation, the alias of a column is not.
        let is_relation = self.after_as && role == Role::Open(Bracket::Parenthesis);
        self.after_as = matches!(token, Token::Word(word) if word.keyword == Keyword::AS);

        if let Role::Close(bracket) = role {
            self.close(bracket);
            self.after_operand = true;
            return;
        }
        let after_operand = std::mem::replace(&mut self.after_operand, is_name);
        let Some(level) = self.levels.last_mut() else { return };
        match role {
            Role::Open(bracket) => {
                if is_relation {
                    level.relations += 1;
                }
                if bracket == Bracket::Subscript && after_operand {
                    level.operator(0);
                }
                self.depth = level.depth();
                self.levels.push(Level { bracket, ..Level::default() });
                return;
            }
            Role::Operator(class) if after_operand => level.operator(class),
            Role::Between => {
                level.betweens += 1;
                level.operator(CLASSES - 1);
            }
            Role::Period => {
                self.periods += 1;
                if self.periods >= NAMES_OF_COLUMN {
                    level.operator(0);
                }
            }
            Role::And if level.betweens > 0 => level.betweens -= 1,
            Role::And | Role::Or => {
                self.logical_operators += 1;
                level.end_item();
            }
            Role::Comma => {
                level.end_item();
                level.relations += usize::from(level.in_from);
            }
            Role::Clause => level.end_clause(),
            Role::From => {
                level.end_clause();
                level.in_from = true;
            }
            Role::Relation if !self.after_as => {
                level.end_item();
                level.relations += 1;
            }
            Role::Relation | Role::Operator(_) | Role::Operand | Role::Close(_) => {}
        }
        self.depth = level.depth();
    }

    /// Closes the innermost bracket of this kind with those within it; its content is an operand of what is around it.
    fn close(&mut self, bracket: Bracket) {
        // A name may be `end`, too.
        let Some(at) = self.levels.iter().rposition(|level| level.bracket == bracket).filter(|at| *at > 0) else {
            return;
        };
        if bracket == Bracket::Case && at + 1 != self.levels.len() {
            return;
        }
        while self.levels.len() > at {
            let inner = self.levels.pop().map_or(0, |level| level.depth());
            let Some(outer) = self.levels.last_mut() else { return };
            outer.operand = outer.operand.max(inner + 1);
            self.depth = outer.depth();
        }
    }

    /// What there is too much of, and how much may be.
    fn exceeded(&self) -> Option<(&'static str, usize)> {
        if self.levels.len() > MAX_NESTING + 1 {
            return Some(("levels of parentheses", MAX_NESTING));
        }
        if self.depth > MAX_DEPTH {
            return Some(("chained operators or relations", MAX_DEPTH));
        }
        (self.logical_operators > MAX_LOGICAL_OPERATORS).then_some(("operators AND and OR", MAX_LOGICAL_OPERATORS))
    }
}

/// What is within a bracket, or the whole statement.
#[derive(Debug, Default)]
struct Level {
    bracket: Bracket,
    /// Depth of the operand that is read, with the operators that are tighter than those of `chains`.
    operand: usize,
    /// Of each class of operators, the chain that is read.
    chains: [Chain; CLASSES],
    /// Depth of the deepest item that was read.
    items: usize,
    /// The relations so far, each of which contains those before.
    relations: usize,
    /// Number of `BETWEEN` whose `AND` has not come yet.
    betweens: usize,
    /// Whether items are relations, because they stand in a `FROM`.
    in_from: bool,
}

/// Operators of one class, in a row.
#[derive(Debug, Clone, Copy, Default)]
struct Chain {
    operators: usize,
    /// Depth of the deepest operand before the last operator.
    operands: usize,
}

impl Level {
    /// Depth of the expressions and relations that were read.
    fn depth(&self) -> usize {
        let item = self.chains.iter().fold(self.operand, |depth, chain| chain.depth(depth));
        self.items.max(item) + self.relations
    }

    /// Reads an operator, whose left operand includes the chains of tighter ones.
    fn operator(&mut self, class: usize) {
        let (tighter, looser) = self.chains.split_at_mut(class);
        let left = tighter.iter().fold(self.operand, |depth, chain| chain.depth(depth));
        tighter.fill(Chain::default());
        self.operand = 0;
        if let Some(chain) = looser.first_mut() {
            chain.operands = chain.operands.max(left);
            chain.operators += 1;
        }
    }

    fn end_item(&mut self) {
        let relations = std::mem::take(&mut self.relations);
        self.items = self.depth();
        self.relations = relations;
        (self.operand, self.chains) = (0, [Chain::default(); CLASSES]);
    }

    fn end_clause(&mut self) {
        self.end_item();
        (self.betweens, self.in_from) = (0, false);
    }
}

impl Chain {
    /// Depth of the chain if `right` is that of its last operand.
    fn depth(self, right: usize) -> usize {
        self.operands.max(right) + self.operators
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::tokenizer::Tokenizer;

    use super::*;
    use crate::syntax::dialect::TidetableDialect;

    fn tokens(text: &str) -> Vec<TokenWithSpan> {
        Tokenizer::new(&TidetableDialect, text).tokenize_with_location().unwrap()
    }

    /// What is too much in a statement.
    fn refused(text: &str) -> Option<SqlError> {
        check_depth(&tokens(text)).err().map(SqlError::from)
    }

    #[test]
    fn chains_are_measured_by_precedence() {
        let chain = |term: &str, op: &str, terms: usize| vec![term; terms].join(op);
        let deep = MAX_DEPTH + 10;
        for term in
            ["a", "t.a", "a * 2", "a::int", "-a", "f(a, b)", "CASE WHEN a AND b THEN c END", "a AT TIME ZONE 'UTC'"]
        {
            let sum = |terms| format!("SELECT {} FROM t", chain(term, " + ", terms));
            assert!(refused(&sum(MAX_DEPTH - 10)).is_none(), "{term}");
            assert!(refused(&sum(deep)).is_some(), "{term}");
        }
        for (term, op) in
            [("b", " BETWEEN 1 AND "), ("'a'", " || "), ("SELECT 1", " UNION ALL "), ("a", " LIKE "), ("a", "::")]
        {
            assert!(refused(&format!("SELECT {}", chain(term, op, deep))).is_some(), "{op}");
        }
        for (start, item, op) in [("SELECT x", "[1]", ""), ("SELECT (x)", ".a", ""), ("SELECT 1 FROM t", ", t", "")] {
            assert!(refused(&format!("{start}{}", chain(item, op, deep))).is_some(), "{item}");
        }
        let tables: Vec<String> = (0..deep).map(|at| format!("t{at} AS (SELECT 1)")).collect();
        assert!(refused(&format!("WITH {} SELECT 1", tables.join(", "))).is_some());
    }

    #[test]
    fn an_operand_is_as_deep_as_its_parentheses() {
        let sum = |terms: usize| format!("({})", vec!["a"; terms].join(" + "));
        assert!(refused(&format!("SELECT {} + {}", sum(600), sum(600))).is_none());
        assert!(refused(&format!("SELECT {}{}", sum(600), " + a".repeat(600))).is_some());
        assert!(refused(&format!("SELECT {}{}", sum(600), " * a".repeat(600))).is_some());
    }

    #[test]
    fn wide_statements_are_not_deep() {
        let list = vec!["-1"; 100_000].join(", ");
        assert!(refused(&format!("SELECT a FROM t WHERE a IN ({list})")).is_none());
        let columns = vec!["a + b * c AS d"; 5_000].join(", ");
        assert!(refused(&format!("SELECT {columns} FROM t")).is_none());
        let filters = vec!["t.a BETWEEN b + 1 AND 2 AND c IS NOT NULL"; 4_000].join(" OR ");
        assert!(refused(&format!("SELECT a FROM t WHERE {filters}")).is_none());
        assert!(
            refused(&vec!["a"; MAX_LOGICAL_OPERATORS + 2].join(" AND ")).unwrap().to_string().contains("AND and OR")
        );
    }

    #[test]
    fn nesting_is_bounded_and_located() {
        let nested = |levels: usize| format!("SELECT\n {}1{}", "(".repeat(levels), ")".repeat(levels));
        assert!(refused(&nested(MAX_NESTING)).is_none());
        let error = refused(&nested(100_000)).unwrap();
        assert!(error.to_string().contains("50 levels of parentheses"), "{error}");
        assert_eq!(error.place(), Some((2, 52)));
    }
}
