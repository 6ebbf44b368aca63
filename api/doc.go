// Package api holds the wire types of the HTTP API, version 1. The server makes
// the OpenAPI document from them; api/client is the Go client over all of it, and
// api/fastclient the small one behind Slurm's command names.
//
// Rules between versions. Fields and values are added, never renamed or removed
// within a version; clients ignore fields that they do not know, and show words
// that they do not know (states, reasons, kinds) as they are. A client sends
// VersionHeader; a server that is too old or too new for it answers
// fault.Unsupported and says which side to update. A newer client may use a
// feature only if the server lists it in ServerInfo.Features.
//
// Times are RFC 3339 in UTC; durations are seconds; memory is bytes; CPUs may be
// fractions. A field that is left out means "not asked" or "not known". Job.Spec is
// the form in which a job is kept, of package job: its durations are nanoseconds and
// its CPUs thousandths.
//
// The package imports no HTTP.
package api

// Version is the version of the API that this package speaks; it stands in every
// path, and Minor grows when something is added.
const (
	Version = 1
	Minor   = 0
)

// VersionHeader carries "1.0" of the client in requests, of the server in responses.
const VersionHeader = "Cox-Api"

// Prefix is the beginning of every versioned path.
const Prefix = "/v1"
