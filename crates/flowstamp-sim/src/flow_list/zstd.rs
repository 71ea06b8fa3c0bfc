//! Reads pages compressed with zstd. Parquet's library only has a decoder in C, which the build would have to compile.
//! Therefore the library reads the pages as uncompressed, and they are decompressed here.

use bytes::Bytes;
use parquet::basic::Compression;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::serialized_reader::SerializedPageReader;
use std::fs::File;
use std::io::Read;
use std::sync::Arc;

/// Maximum size of a decompressed page, bytes: far above what writers produce (1 MB is usual), and below what a
/// malicious file could demand.
const MOST_BYTES: u64 = 1 << 28;

/// The pages of a column.
pub struct Pages(SerializedPageReader<File>);

impl Pages {
    /// Reads the pages of the column that `metadata` describes, with `rows` rows.
    pub fn new(file: Arc<File>, metadata: &ColumnChunkMetaData, rows: usize) -> Result<Self> {
        let as_they_are =
            metadata.clone().into_builder().set_compression(Compression::UNCOMPRESSED).build()?;
        SerializedPageReader::new(file, &as_they_are, rows, None).map(Self)
    }
}

/// Decompresses a page, except its first `plain` bytes, which are copied.
fn decompressed(page: &Bytes, plain: usize) -> Result<Bytes> {
    let wrong = |what: String| ParquetError::General(format!("zstd: {what}"));
    let (before, packed) =
        page.split_at_checked(plain).ok_or_else(|| wrong("the page ends in its levels".to_owned()))?;
    let mut whole = before.to_vec();
    if !packed.is_empty() {
        let decoder = ruzstd::decoding::StreamingDecoder::new(packed).map_err(|e| wrong(e.to_string()))?;
        decoder.take(MOST_BYTES).read_to_end(&mut whole).map_err(|e| wrong(e.to_string()))?;
    }
    if whole.len() as u64 >= MOST_BYTES {
        return Err(wrong(format!("a page has more than {MOST_BYTES} bytes")));
    }
    Ok(whole.into())
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let mut page = self.0.get_next_page()?;
        match &mut page {
            Some(Page::DataPage { buf, .. } | Page::DictionaryPage { buf, .. }) => {
                *buf = decompressed(buf, 0)?;
            }
            Some(Page::DataPageV2 {
                buf,
                def_levels_byte_len,
                rep_levels_byte_len,
                is_compressed: true,
                ..
            }) => {
                *buf = decompressed(buf, (*def_levels_byte_len + *rep_levels_byte_len) as usize)?;
            }
            _ => {}
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.0.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.0.skip_next_page()
    }
}

impl Iterator for Pages {
    type Item = Result<Page>;
    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}
