//! For which processor a binary is, and whether it needs other files.

use anyhow::{Context as _, Result, bail, ensure};
use object::Endianness;
use object::elf::{EM_AARCH64, EM_X86_64, FileHeader64, PT_INTERP};
use object::read::elf::{FileHeader as _, ProgramHeader as _};
use oci_spec::image::Arch;

/// The architecture of a binary that needs no other file.
pub(crate) fn architecture_of_static(binary: &[u8]) -> Result<Arch> {
    let header = FileHeader64::<Endianness>::parse(binary).context("this is no program for 64-bit Linux")?;
    let endian = header.endian()?;
    let mut segments = header.program_headers(endian, binary)?.iter();
    ensure!(
        !segments.any(|segment| segment.p_type(endian) == PT_INTERP),
        "the program is linked dynamically and would need libraries that the image does not have; \
         build it with --target x86_64-unknown-linux-musl"
    );
    match header.e_machine(endian) {
        EM_X86_64 => Ok(Arch::Amd64),
        EM_AARCH64 => Ok(Arch::ARM64),
        other => bail!("the program is for a processor with the number {other}; supported are x86-64 and AArch64"),
    }
}
