package api

import "time"

// GatewayRoutes is one line of the stream that a gateway reads: GET /v1/gateway/routes. The first one
// is whole (Reset), the following ones have what has changed.
type GatewayRoutes struct {
	Version  uint64         `json:"version"`         // of all routes; grows with every change, over restarts of the server too
	Reset    bool           `json:"reset,omitempty"` // services that are not listed are gone
	Services []ServiceRoute `json:"services,omitempty"`
	Gone     []string       `json:"gone,omitempty"` // names of services
}

// GatewayRecordFile is the name of the file in the folder of a gateway that has its GatewayRecord.
const GatewayRecordFile = "gateway.json"

// GatewayRecord says which process the gateway of a server is.
type GatewayRecord struct {
	PID     int    `json:"pid"`
	Listen  string `json:"listen"`
	Args    string `json:"args"`
	Version string `json:"version"` // of cox
}

// GatewayInfo is the gateway that a server keeps.
type GatewayInfo struct {
	Address string `json:"address" doc:"for clients, host:port"`
	PID     int    `json:"pid,omitempty" doc:"0: it starts with the first service"`
}

// ServiceRoute is all that a gateway has to know of a service.
type ServiceRoute struct {
	Service string `json:"service"` // "team/chat"
	Host    string `json:"host"`
	Path    string `json:"path,omitempty"`

	Backends []Backend      `json:"backends"`
	Weights  map[uint32]int `json:"weights,omitempty"` // per cent by revision; none: by backends alone

	Timeout time.Duration `json:"timeout,omitempty"` // until the first byte of an answer; 0: the gateway's own
	Sticky  bool          `json:"sticky,omitempty"`
	Tokens  []string      `json:"tokens,omitempty"` // SHA-256 in hex of the tokens one of which a request has to bear
	Rate    float64       `json:"rate,omitempty"`   // requests a second; 0: no bound
	Held    int           `json:"held,omitempty"`   // requests that may wait for a backend; 0: the gateway's own
	H2C     bool          `json:"h2c,omitempty"`
	Asleep  bool          `json:"asleep,omitempty"` // scaled to zero: a request wakes it
	Want    int           `json:"want,omitempty"`   // replicas that are wanted, for error pages
}

// Backend is a replica as the gateway sees it.
type Backend struct {
	ID       string `json:"id"`      // job and attempt, "12.1": counters and stickiness follow it
	Address  string `json:"address"` // host:port
	Replica  uint32 `json:"replica"`
	Revision uint32 `json:"revision"`
	Ready    bool   `json:"ready"` // gets new requests; else those in flight end
}

// GatewayLoad is what a gateway posts each second: POST /v1/gateway/load. Counters grow since the
// gateway's start.
type GatewayLoad struct {
	Gateway  string        `json:"gateway"`           // an identity that is new with each start
	Routes   uint64        `json:"routes"`            // GatewayRoutes.Version that it had taken over before it counted
	Leaving  bool          `json:"leaving,omitempty"` // its last word: it has no request in flight and takes no more
	Services []ServiceLoad `json:"services"`
}

// ServiceLoad are the counters of one service in one gateway.
type ServiceLoad struct {
	Service  string         `json:"service"`
	Requests uint64         `json:"requests"`            // begun
	Failed   uint64         `json:"failed"`              // answered with 5xx by a backend, or not at all
	Held     int            `json:"held"`                // that wait for a backend now
	InFlight map[string]int `json:"in_flight,omitempty"` // now, by Backend.ID; those that are 0 may be left out

	// Latency counts the answers of replicas by the time until their head: element i those above bound i-1
	// and up to bound i of LatencyBounds, the last one those above all bounds. Empty: there was none, or the
	// gateway is older than the field.
	Latency []uint64 `json:"latency,omitempty"`
}

// LatencyBounds returns the upper bounds of the buckets of ServiceLoad.Latency in seconds, ascending. They
// are a part of the format. The slice is the caller's.
func LatencyBounds() []float64 {
	return []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
}
