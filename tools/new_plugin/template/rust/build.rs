// Links the SDK's plain loops, whose place pkg-config knows; set PKG_CONFIG_PATH if plugrad is not in the system's prefix.
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=PKG_CONFIG_PATH");
    let found = Command::new("pkg-config").args(["--variable=libdir", "plugrad-sdk"]).output();
    let directory = match found {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).trim().to_string(),
        _ => panic!("pkg-config does not find plugrad-sdk: install plugrad's SDK, or set PKG_CONFIG_PATH to its lib/pkgconfig"),
    };
    println!("cargo:rustc-link-search=native={directory}");
    println!("cargo:rustc-link-lib=static=plugrad-loops");
    println!("cargo:rustc-link-lib=dylib=stdc++");
}
