package gateway

import (
	"cmp"
	"time"
)

// Limits bound what clients and replicas may take. A field of zero has the value of DefaultLimits.
type Limits struct {
	Header      time.Duration // until the head of a request is here
	HeaderBytes int           // of the head of a request; more is answered with 431
	Idle        time.Duration // that a client's connection stays open between two requests; shorter than Stall
	Stall       time.Duration // without a byte of a body from a client that sends one, or taken by one that reads one
	FirstByte   time.Duration // until the first byte of an answer, where the service says nothing else
	Dial        time.Duration // until a replica takes a connection
	Hold        time.Duration // that a request waits for a replica; never longer than the time until the first byte
	Held        int           // requests of one service that wait for a replica
	Requests    int           // requests of one service at once
	Connections int           // of clients
	Streams     int           // requests at once on one connection of HTTP/2
	Leave       time.Duration // that requests in flight have when the gateway is ended
	HandOver    time.Duration // that requests in flight have when another gateway has taken over
}

// DefaultLimits are for a gateway of one machine.
func DefaultLimits() Limits {
	return Limits{
		Header: 10 * time.Second, HeaderBytes: 64 << 10, Idle: time.Minute, Stall: 75 * time.Second,
		FirstByte: 5 * time.Minute, Dial: 3 * time.Second, Hold: 2 * time.Minute, Held: 100,
		Requests: 10_000, Connections: 20_000, Streams: 250, Leave: 30 * time.Second,
		HandOver: 10 * time.Minute,
	}
}

// fillDefaults gives each field that is zero its default.
func (l *Limits) fillDefaults() {
	d := DefaultLimits()
	l.Header, l.HeaderBytes = cmp.Or(l.Header, d.Header), cmp.Or(l.HeaderBytes, d.HeaderBytes)
	l.Idle, l.Stall = cmp.Or(l.Idle, d.Idle), cmp.Or(l.Stall, d.Stall)
	l.FirstByte, l.Dial = cmp.Or(l.FirstByte, d.FirstByte), cmp.Or(l.Dial, d.Dial)
	l.Hold, l.Held = cmp.Or(l.Hold, d.Hold), cmp.Or(l.Held, d.Held)
	l.Requests, l.Connections = cmp.Or(l.Requests, d.Requests), cmp.Or(l.Connections, d.Connections)
	l.Streams, l.Leave = cmp.Or(l.Streams, d.Streams), cmp.Or(l.Leave, d.Leave)
	l.HandOver = cmp.Or(l.HandOver, d.HandOver)
}
