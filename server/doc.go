// Package server puts the HTTP API over a control plane together:
//
//	server ──► jobs       the routes about jobs
//	   ├─────► admin      the routes about the machine room and its rules
//	   └─────► transport  HTTP below the routes: listening, identity, bounds, errors, the document
//
// It has the defaults of the configuration, lays the policy in force over the site's rules for
// both groups of routes, and owns the order in which streams, routes and listeners end. The
// generated documents (docs/reference/openapi.json, docs/reference/api.md) are made here, where all routes are known.
//
// It has no route and no state of its own.
package server
