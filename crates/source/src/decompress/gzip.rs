//! Gzip files: members one behind the other, and what tapes and devices leave behind the last of them.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::GzDecoder;

/// Bytes of the buffer between file and decoder.
const BUFFER: usize = 64 << 10;

/// Decompresses all members of a gzip file. NUL bytes behind the last one are padding.
pub(crate) struct Gzip<R: Read> {
    /// `None` only while the next member is looked for.
    member: Option<GzDecoder<BufReader<R>>>,
    has_ended: bool,
}

impl<R: Read> Gzip<R> {
    pub fn new(from: R) -> Self {
        let from = BufReader::with_capacity(BUFFER, from);
        Self { member: Some(GzDecoder::new(from)), has_ended: false }
    }

    /// The compressed file; `None` after an error between members.
    pub fn get_ref(&self) -> Option<&R> {
        self.member.as_ref().map(|member| member.get_ref().get_ref())
    }

    /// The compressed file; `None` after an error between members.
    pub fn get_mut(&mut self) -> Option<&mut R> {
        self.member.as_mut().map(|member| member.get_mut().get_mut())
    }

    /// Goes on to the next member, or to the end of the file.
    fn next_member(&mut self) -> io::Result<()> {
        let Some(member) = &mut self.member else { return Ok(()) };
        let from = member.get_mut();
        let mut padding = 0;
        loop {
            let bytes = from.fill_buf()?;
            let Some(first) = bytes.first() else {
                self.has_ended = true;
                return Ok(());
            };
            if *first != 0 {
                break;
            }
            let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
            padding += zeros;
            from.consume(zeros);
        }
        if padding > 0 || from.buffer().first() != Some(&0x1F) {
            let behind = padding + from.buffer().len();
            let problem = format!("at least {behind} bytes behind the end of its data are not gzip");
            return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
        }
        if let Some(member) = self.member.take() {
            self.member = Some(GzDecoder::new(member.into_inner()));
        }
        Ok(())
    }
}

impl<R: Read> Read for Gzip<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = self.member.as_mut().filter(|_| !self.has_ended && !into.is_empty()) {
            let count = member.read(into)?;
            if count > 0 {
                return Ok(count);
            }
            self.next_member()?;
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn unpacked(bytes: &[u8]) -> io::Result<String> {
        let mut text = String::new();
        Gzip::new(bytes).read_to_string(&mut text)?;
        Ok(text)
    }

    #[test]
    fn members_are_read_up_to_the_padding() {
        let two = [packed(b"a,b\n"), packed(b""), packed(b"1,2\n")].concat();
        assert_eq!(unpacked(&two).unwrap(), "a,b\n1,2\n");
        assert_eq!(unpacked(&[&two[..], &[0; 100_000]].concat()).unwrap(), "a,b\n1,2\n");
        let behind = unpacked(&[&two[..], b"end of tape"].concat()).unwrap_err();
        assert!(behind.to_string().contains("11 bytes behind the end"), "{behind}");
        let cut = unpacked(&two[..two.len() - 3]).unwrap_err();
        assert_eq!(cut.kind(), io::ErrorKind::UnexpectedEof);
    }
}
