// Package submission has the commands that read a job's text: run, submit (and its
// --dry-run), whatif, advise and convert.
//
// All of them read a text by control/intake, as the server does. submit, whatif and
// advise ask a server; run starts a control plane of its own on virtual nodes of this
// machine (cmd/internal/localrun) and needs Linux; convert needs neither.
package submission
