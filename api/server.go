package api

import (
	"encoding/json"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
)

// ServerInfo says what answers.
type ServerInfo struct {
	Version  string    `json:"version" doc:"of cox"`
	API      string    `json:"api" doc:"1.0"`
	Oldest   string    `json:"oldest" doc:"oldest API version of a client that is served"`
	Features []string  `json:"features,omitempty"`
	Name     string    `json:"name" doc:"of the cluster"`
	Host     string    `json:"host"`
	PID      int       `json:"pid"`
	Started  time.Time `json:"started"`
	Now      time.Time `json:"now"`
	You      Identity  `json:"you"`
	Pools    []Pool    `json:"pools"`
	Change   uint64    `json:"change"`

	Gateway *GatewayInfo `json:"gateway,omitempty" doc:"left out: the server keeps none"`

	Damaged []string `json:"damaged,omitempty" doc:"parts of the state that do not read as they were written; only administrators see them"`
}

// FeatureThrowAway is among the features of a server whose jobs end with it (cox up --dev).
const FeatureThrowAway = "throw-away"

// Identity is who the server takes the caller for.
type Identity struct {
	Name     string   `json:"name"`
	UID      uint32   `json:"uid"`
	GID      uint32   `json:"gid"`
	Accounts []string `json:"accounts,omitempty"`
	Admin    bool     `json:"admin,omitempty"`
	Role     string   `json:"role,omitempty" doc:"gateway: the token is for a gateway alone"`
	Via      string   `json:"via" doc:"socket or token"`

	Session *Session `json:"session,omitempty" doc:"of a browser that is signed in to the web console"`
}

// Session is a browser's session of the web console. It is a token of its user, in a cookie.
type Session struct {
	Token   string    `json:"token" doc:"its id, as cox token list shows it"`
	Expires time.Time `json:"expires,omitzero"`
}

// WebLink signs a browser in to the web console, once.
type WebLink struct {
	URL     string    `json:"url,omitempty" doc:"empty: the server listens on no address that a browser can open"`
	Path    string    `json:"path" doc:"of the link, at whatever address the browser reaches the server"`
	Expires time.Time `json:"expires"`
}

// KindGap is the kind of an event that is none: what was missed is no longer kept,
// Seq is the newest event. Whoever watches lists anew.
const KindGap = "gap"

// Event is one durable change. Seq is its number in the journal: a watch that is
// resumed after it misses nothing and sees nothing twice, also over a restart.
type Event struct {
	Seq     uint64        `json:"seq"`
	At      time.Time     `json:"at"`
	Kind    string        `json:"kind" doc:"submitted, allocated, started, ended, requeued, cancelled, held, released, updated, uncertain, node-drained, node-resumed, node-fenced, node-unfenced, pool-added, pool-removed, machine-owner, …"`
	Job     job.ID        `json:"job,omitempty"`
	Name    string        `json:"name,omitempty"`
	Count   int           `json:"count,omitempty" doc:"submitted: tasks of the array, numbered from job"`
	User    string        `json:"user,omitempty"`
	State   string        `json:"state,omitempty" doc:"of the job after the event"`
	Attempt uint32        `json:"attempt,omitempty"`
	Exit    *job.ExitCode `json:"exit,omitempty"`
	Nodes   []string      `json:"nodes,omitempty"`
	By      string        `json:"by,omitempty" doc:"who asked for it"`
	Message string        `json:"message,omitempty"`
}

// Token is an access token without its secret.
type Token struct {
	ID       string    `json:"id" doc:"public part; begins every secret made from it"`
	Name     string    `json:"name" doc:"user name"`
	UID      uint32    `json:"uid"`
	GID      uint32    `json:"gid"`
	Accounts []string  `json:"accounts,omitempty"`
	Admin    bool      `json:"admin,omitempty"`
	Role     string    `json:"role,omitempty" doc:"gateway: for a gateway alone"`
	Comment  string    `json:"comment,omitempty"`
	Created  time.Time `json:"created"`
	By       string    `json:"by,omitempty"`
	Parent   string    `json:"parent,omitempty" doc:"the token that it was made with, and is revoked with"`
	Expires  time.Time `json:"expires,omitzero"`
	Revoked  time.Time `json:"revoked,omitzero"`
	Used     time.Time `json:"used,omitzero" doc:"last use, to the minute; not kept over a restart"`
}

// NewToken asks for a token; only an administrator names another user or asks for admin or a role.
type NewToken struct {
	User     string   `json:"user,omitempty"`
	Accounts []string `json:"accounts,omitempty"`
	Admin    bool     `json:"admin,omitempty"`
	Role     string   `json:"role,omitempty" doc:"gateway: it may read routes and post load, and nothing else"`
	Comment  string   `json:"comment,omitempty"`
	TTL      float64  `json:"ttl,omitempty" doc:"seconds until it expires; 0: 90 days"`
}

// MadeToken is a new token with its secret, shown once.
type MadeToken struct {
	Token  Token  `json:"token"`
	Secret string `json:"secret"`
}

// Tokens is the answer to a list of tokens.
type Tokens struct {
	Tokens []Token `json:"tokens"`
}

// AuditRecord is one change with who asked for it.
type AuditRecord struct {
	Seq  uint64          `json:"seq"`
	At   time.Time       `json:"at"`
	By   string          `json:"by"`
	UID  uint32          `json:"uid"`
	From string          `json:"from" doc:"socket, tcp 127.0.0.1:5123, …"`
	What string          `json:"what" doc:"kind of the journal record"`
	Job  job.ID          `json:"job,omitempty"`
	Data json.RawMessage `json:"data,omitempty" doc:"the record without scripts, environments or secrets"`
}

// Audit is a page of audit records, oldest first.
type Audit struct {
	Records []AuditRecord `json:"records"`
	Next    uint64        `json:"next,omitempty"`
}

// History is a page of jobs from the store, newest first, ended ones included.
type History struct {
	Jobs []Job  `json:"jobs"`
	Next string `json:"next,omitempty"`
}

// Backup asks for an online copy of the state directory into a new folder of the
// server's machine.
type Backup struct {
	WithSecrets bool `json:"with_secrets,omitempty" doc:"the values of users' secrets too, in folder secrets"`

	Dir string `json:"dir"`
}

// BackupDone says what was written.
type BackupDone struct {
	Dir   string `json:"dir"`
	Bytes int64  `json:"bytes"`
	Seq   uint64 `json:"seq"`
}
