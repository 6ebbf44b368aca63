// Package transport is HTTP below the routes of the API: listening, who asks, whether he may use
// a route, bodies, bounds, errors, streams, and the document that describes the routes.
//
//	ListenSocket, ListenTCP ──► Serve ──► who asks ──► may he ──► his place ──► body ──► handler
//
// A Route names its path and its verb of auth; AddRoute binds it to a handler, which gets a Call.
//
// Guarantees. No route is served without asking auth. One user can neither take every connection
// nor every place of work. A body is bounded and read whole before its handler sees it. A caller
// who loses his rights loses his streams within half a second. Errors have the form of api.Error,
// with the status of their kind, and never a token in them.
//
// It knows no job, pool or policy of a site, and terminates no TLS: TCP is for loopback
// addresses.
package transport
