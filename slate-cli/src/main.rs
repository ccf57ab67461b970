//! The program `slate`; see the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    slate_cli::main()
}
