//! Conversions from and to binaries.

use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig, general_purpose::STANDARD},
};

use super::{ConversionTarget, failure, unsupported};
use crate::{
    Code, Error, Result,
    expression::Evaluated,
    number::Number,
    raw::{Kind, Value},
};

/// The binary subtype of UUIDs.
pub(super) const UUID: u8 = 4;

/// URL-safe base64, with padding or without.
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(
    &alphabet::URL_SAFE,
    GeneralPurposeConfig::new().with_encode_padding(false).with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// How a string represents bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Base64,
    Base64Url,
    Hex,
    Utf8,
    Uuid,
    /// `Uuid` for the binary subtype of UUIDs, otherwise `Base64`.
    Auto,
}

impl Format {
    pub(super) fn parse(value: Value<'_>) -> Result<Self> {
        let name = value.as_str().ok_or_else(|| {
            let message = format!("the parameter 'format' of $convert is a string, not {}", value.kind().alias());
            Error::new(Code(4_341_114), message)
        })?;
        Ok(match name {
            "base64" => Self::Base64,
            "base64url" => Self::Base64Url,
            "hex" => Self::Hex,
            "utf8" => Self::Utf8,
            "uuid" => Self::Uuid,
            "auto" => Self::Auto,
            _ => return Err(Error::new(Code(4_341_125), format!("unknown format of $convert: {name}"))),
        })
    }

    /// Returns the format that `Auto` stands for, by the binary subtype and, if given, the length of the bytes; another format itself.
    fn of(self, subtype: u8, bytes: Option<&[u8]>) -> Self {
        match self {
            Self::Auto if subtype == UUID && bytes.is_none_or(|bytes| bytes.len() == 16) => Self::Uuid,
            Self::Auto => Self::Base64,
            other => other,
        }
    }
}

/// The order of the bytes of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    pub(super) fn parse(value: Value<'_>) -> Result<Self> {
        match value.as_str() {
            Some("little") => Ok(Self::Little),
            Some("big") => Ok(Self::Big),
            Some(name) => Err(Error::new(Code(9_130_002), format!("unknown byteOrder of $convert: {name}"))),
            None => {
                let kind = value.kind().alias();
                let message = format!("the parameter 'byteOrder' of $convert is a string, not {kind}");
                Err(Error::new(Code(9_130_001), message))
            }
        }
    }

    /// Returns the bytes in this order, given in little-endian order.
    fn arranged<const N: usize>(self, mut bytes: [u8; N]) -> [u8; N] {
        if self == Self::Big {
            bytes.reverse();
        }
        bytes
    }
}

/// Reads the parameter `subtype`.
pub(super) fn subtype(value: Value<'_>) -> Result<u8> {
    let number = Number::of(value).ok_or_else(|| {
        Error::new(Code(4_341_108), format!("the subtype of $convert is a number, not {}", value.kind().alias()))
    })?;
    let whole =
        number.to_i64().ok_or_else(|| Error::new(Code(4_341_106), "the subtype of $convert is a whole number"))?;
    u8::try_from(whole)
        .ok()
        .filter(|subtype| matches!(subtype, 0..=9 | 128..))
        .ok_or_else(|| Error::new(Code(4_341_107), format!("unknown subtype of binData: {whole}")))
}

fn need_format(format: Option<Format>) -> Result<Format> {
    let message = "$convert needs the parameter 'format' to convert between string and binData";
    format.ok_or_else(|| Error::new(Code(4_341_115), message))
}

/// Returns a binary of the subtype.
pub(super) fn from<'v>(
    value: Value<'_>,
    subtype: u8,
    format: Option<Format>,
    order: ByteOrder,
) -> Result<Evaluated<'v>> {
    let bytes: Vec<u8> = match value.kind() {
        Kind::Binary => {
            return match value.as_binary() {
                Some((same, _)) if same == subtype => Ok(Evaluated::Owned(value.to_owned())),
                _ => Err(failure("conversions between subtypes of binData are not supported")),
            };
        }
        Kind::Int32 => order.arranged(value.as_i32().unwrap_or_default().to_le_bytes()).into(),
        Kind::Int64 => order.arranged(value.as_i64().unwrap_or_default().to_le_bytes()).into(),
        Kind::Double => order.arranged(value.as_f64().unwrap_or_default().to_le_bytes()).into(),
        Kind::String => {
            let format = need_format(format)?.of(subtype, None);
            if (subtype == UUID) != (format == Format::Uuid) {
                return Err(failure("the format 'uuid' and the subtype 4 need each other"));
            }
            parse(value.as_str().unwrap_or_default(), format)?
        }
        _ => return Err(unsupported(value, ConversionTarget::Binary(subtype))),
    };
    // Binary subtype 2 is obsolete; its payload repeats the length.
    let inner = if subtype == 2 { length(bytes.len())?.to_vec() } else { Vec::new() };
    let payload = [inner, bytes].concat();
    let binary = [&length(payload.len())?[..], &[subtype], &payload].concat();
    Ok(Evaluated::of(Kind::Binary, &binary))
}

/// Returns a binary of the generic subtype.
pub(in super::super) fn generic<'v>(bytes: &[u8]) -> Result<Evaluated<'v>> {
    Ok(Evaluated::of(Kind::Binary, &[&length(bytes.len())?[..], &[0], bytes].concat()))
}

fn length(bytes: usize) -> Result<[u8; 4]> {
    super::super::super::evaluated::check_size(bytes)?;
    Ok(i32::try_from(bytes).unwrap_or(i32::MAX).to_le_bytes())
}

fn parse(text: &str, format: Format) -> Result<Vec<u8>> {
    let bytes = match format {
        Format::Base64 | Format::Auto => STANDARD.decode(text).ok(),
        Format::Base64Url => URL_SAFE.decode(text).ok(),
        Format::Hex => hex::decode(text).ok(),
        Format::Utf8 => Some(text.as_bytes().to_vec()),
        // MongoDB accepts only the form with hyphens.
        Format::Uuid if text.len() == 36 => bson::Uuid::parse_str(text).ok().map(|uuid| uuid.bytes().to_vec()),
        Format::Uuid => None,
    };
    bytes.ok_or_else(|| failure(format!("the string has not the format {format:?}")))
}

/// Returns the bytes of a binary as text.
pub(super) fn to_text(subtype: u8, bytes: &[u8], format: Option<Format>) -> Result<String> {
    let text = match need_format(format)?.of(subtype, Some(bytes)) {
        Format::Base64 | Format::Auto => Some(STANDARD.encode(bytes)),
        Format::Base64Url => Some(URL_SAFE.encode(bytes)),
        Format::Hex => Some(hex::encode_upper(bytes)),
        Format::Utf8 => std::str::from_utf8(bytes).ok().map(str::to_owned),
        Format::Uuid if subtype == UUID => {
            <[u8; 16]>::try_from(bytes).ok().map(|bytes| bson::Uuid::from_bytes(bytes).to_string())
        }
        Format::Uuid => None,
    };
    text.ok_or_else(|| failure("the bytes cannot be written in this format"))
}

/// Returns the integer that 1, 2, 4 or 8 bytes represent.
pub(super) fn to_whole(bytes: &[u8], order: ByteOrder) -> Result<i64> {
    fn read<const N: usize>(bytes: &[u8], order: ByteOrder) -> Option<[u8; N]> {
        Some(order.arranged(<[u8; N]>::try_from(bytes).ok()?))
    }
    let whole = match bytes.len() {
        1 => read(bytes, order).map(|bytes| i8::from_le_bytes(bytes).into()),
        2 => read(bytes, order).map(|bytes| i16::from_le_bytes(bytes).into()),
        4 => read(bytes, order).map(|bytes| i32::from_le_bytes(bytes).into()),
        8 => read(bytes, order).map(i64::from_le_bytes),
        _ => None,
    };
    whole.ok_or_else(|| failure(format!("{} bytes are no integer", bytes.len())))
}

/// Returns the floating-point number that 4 or 8 bytes represent.
pub(super) fn to_double(bytes: &[u8], order: ByteOrder) -> Result<f64> {
    if let Ok(bytes) = <[u8; 4]>::try_from(bytes) {
        return Ok(f32::from_le_bytes(order.arranged(bytes)).into());
    }
    match <[u8; 8]>::try_from(bytes) {
        Ok(bytes) => Ok(f64::from_le_bytes(order.arranged(bytes))),
        Err(_) => Err(failure(format!("{} bytes are no floating-point number", bytes.len()))),
    }
}
