# Debian packages of unstable without installing them: apt with state folders of its own downloads, dpkg-deb unpacks. To be sourced.

# unpack_packages STATE ROOT PACKAGE…: unpacks the packages into ROOT; STATE is scratch, and removed.
unpack_packages() {
    state=$1 root=$2
    shift 2
    mkdir -p "$state/lists/partial" "$state/cache/archives/partial" "$state/debs" "$root"
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' | grep -v security | head -n 1)
    [ -n "$mirror" ] || { echo "no Debian mirror among this machine's package sources; run apt-get update" >&2; return 1; }
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror unstable main" >"$state/sources.list"
    cat >"$state/apt.conf" <<EOF
Dir::Etc::SourceList "$state/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::State::Lists "$state/lists";
Dir::Cache "$state/cache";
Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::Check-Valid-Until "false";
APT::Sandbox::User "root";
EOF
    APT_CONFIG=$state/apt.conf apt-get -qq update
    (cd "$state/debs" && APT_CONFIG=$state/apt.conf apt-get -qq download "$@")
    for deb in "$state"/debs/*.deb; do dpkg-deb -x "$deb" "$root"; done
    rm -rf "$state"
}
