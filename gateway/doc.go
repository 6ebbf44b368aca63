// Package gateway is the proxy in front of services. It finds the service of a request by host and
// path, checks its token and rate, picks a ready replica, and forwards the request with
// httputil.ReverseProxy: HTTP/1.1, HTTP/2 (with TLS, or without: h2c), gRPC, WebSocket, server-sent
// events. What the proxy of the standard library does not do is done here: routes, balance, retries,
// holding, limits, counters.
//
// A Server reads its routes from a Source as a stream and posts its load there each second. While the
// Source does not answer, it goes on with the routes that it knew, over its own restart too if it has a
// folder for them. To pick a replica and to count the request as in flight there is one step, so a load
// that is posted after new routes were taken over counts every request that was sent by older ones.
//
// Guarantees: a request whose connection to a replica failed is sent to another one, whatever its
// method, because no byte of it was sent. A request without a body whose method is idempotent is sent
// once more if its replica went away without an answer. No other request is sent twice.
//
// It ends TLS of clients and begins none; it does not route by content, cache, compress or change
// bodies.
package gateway
