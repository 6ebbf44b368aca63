// Package fastclient is the small client behind Slurm's command names: HTTP/1.1 written
// by hand over one connection, JSON encoded and read without reflection. A command
// that asks one question and ends spends no time on net/http, TLS or encoding/json.
//
// A Client is for one goroutine and one request at a time; the connection is kept
// between requests. Nothing is sent twice. Errors have a kind and, where the server
// gave one, a remedy; an answer with an error status is an *api.Error.
//
// What it does not do: TLS (an https server is refused; package client speaks it),
// redirects, compression, HTTP/2, requests with a body of unknown length.
package fastclient
