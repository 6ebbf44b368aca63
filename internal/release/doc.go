// Package release builds the files of a release from the sources: archives of the programs for
// Linux and of the client for macOS, Debian packages, container images, the Helm chart, an SBOM
// in CycloneDX's JSON form, the licences of third parties, and checksums. The command
// internal/release/make runs it (make release).
//
// The same sources, version and Go make the same bytes, in any folder and on any machine: every
// time in an archive is that of the commit, entries are sorted, owners are root, and no path of
// the machine is in a program (-trimpath). Programs are cross-compiled by Go alone, so no C
// compiler, container daemon or Debian is needed.
//
// The package signs nothing and uploads nothing.
package release
