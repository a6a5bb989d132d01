use super::literal;
use super::tree::{Binary, Node, NodeKind, Unary};
use super::typing::{Float, Typing};
use crate::error::clip;
use crate::expr::typing::Type;

/// Returns the text of an expression that converts `e` to `to`. Integer literals get a point if
/// literals have the type `to` and `e` consists only of literals, as in `1 / 2`. Otherwise `e` is
/// wrapped in a conversion.
pub(crate) fn converted(e: &Node, to: Float, typing: &Typing) -> String {
    match of_floats(e, to).filter(|_| typing.float == to) {
        Some(floats) => clip(&floats.to_string()),
        None => format!("{}({})", to.name(), clip(&e.to_string())),
    }
}

fn of_floats(e: &Node, to: Float) -> Option<Node> {
    let kind = match &e.kind {
        NodeKind::Int(value) => {
            // A point is added only if the conversion is exact; otherwise the literal would change
            // its value.
            let (bits, whole) = match to {
                Float::F32 => (literal::of_f32(*value as f32), *value as f32 as i128),
                Float::F64 => ((*value as f64).to_bits(), *value as f64 as i128),
            };
            (whole == i128::from(*value)).then_some(NodeKind::Float(bits))?
        }
        NodeKind::Unary(Unary::Neg, of) => {
            NodeKind::Unary(Unary::Neg, Box::new(of_floats(of, to)?))
        }
        NodeKind::Binary(op, a, b, at) if *op != Binary::Rem => {
            NodeKind::Binary(*op, Box::new(of_floats(a, to)?), Box::new(of_floats(b, to)?), *at)
        }
        _ => return None,
    };
    Some(Node { kind, at: e.at })
}

/// Returns the literal 0 or 1 in this type.
pub(crate) fn number(value: u8, ty: Type, typing: &Typing) -> String {
    match ty {
        Type::Int | Type::Bool => value.to_string(),
        ty if ty == typing.float.into() => format!("{value}.0"),
        Type::F32 => format!("f32({value})"),
        Type::F64 => format!("f64({value})"),
    }
}

/// Returns the text of an expression that turns a boolean into a number of this type.
pub(crate) fn chosen(ty: Type, typing: &Typing) -> String {
    let [one, zero] = [1, 0].map(|value| number(value, ty, typing));
    format!("if … {{ {one} }} else {{ {zero} }}")
}

/// Returns the text of a comparison that turns a number called `name` into a boolean.
pub(crate) fn compared(name: char, found: Type, sign: &str, typing: &Typing) -> String {
    format!("{name} {sign} {}", number(0, found, typing))
}
