package pmix

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/coxswain-sched/coxswain/agent/step/wire"
)

// Op says what a Message is.
type Op string

// The messages between a PMIx server and srun.
const (
	OpFence  Op = "fence"  // server: Ranks of this node came to a fence, with Data
	OpFenced Op = "fenced" // srun: all Ranks came; Data of all nodes
	OpGet    Op = "get"    // server: needs the data of Rank, as request ID
	OpWant   Op = "want"   // srun: Node asks for the data of Rank, as its request ID
	OpHave   Op = "have"   // server: answer to OpWant
	OpGot    Op = "got"    // srun: answer to OpGet
	OpAbort  Op = "abort"  // server: Rank ends the step with Status; Text says why
	OpLost   Op = "lost"   // server: Rank went away without a word
	OpSay    Op = "say"    // server: Text is for the user; the step goes on
)

// Message is what PMIx servers and srun say to each other.
type Message struct {
	Op     Op     `json:"op"`
	ID     uint64 `json:"id,omitempty"`
	Node   int    `json:"node,omitempty"` // index into the step's nodes (see Layout)
	Rank   int    `json:"rank,omitempty"`
	Ranks  []int  `json:"ranks,omitempty"`  // of a fence, in order; none: all of the step
	Status int    `json:"status,omitempty"` // a pmix_status_t, or the exit code of OpAbort
	Text   string `json:"text,omitempty"`
	Data   []byte `json:"-"`
}

// Encode is the message as bytes.
func (m *Message) Encode() []byte {
	head, err := json.Marshal(m)
	if err != nil {
		panic(err) // it holds nothing that cannot be encoded
	}
	out := binary.AppendUvarint(make([]byte, 0, binary.MaxVarintLen32+len(head)+len(m.Data)), uint64(len(head)))
	return append(append(out, head...), m.Data...)
}

// Decode reads what Encode wrote. The message's Data is part of body.
func Decode(body []byte) (Message, error) {
	size, n := binary.Uvarint(body)
	if n <= 0 || size > uint64(len(body)-n) {
		return Message{}, errors.New("a PMIx message has no head")
	}
	var m Message
	if err := json.Unmarshal(body[n:n+int(size)], &m); err != nil {
		return Message{}, fmt.Errorf("PMIx message: %w", err)
	}
	m.Data = body[n+int(size):]
	return m, nil
}

// chunkSize is the most of a message in one frame: nodes accept no longer ones.
const chunkSize = 48 << 10

// maxMessage bounds a message: what all ranks of a step publish.
const maxMessage = 1 << 30

// Sender sends messages over a link, each whole. It is safe for concurrent use.
type Sender struct {
	Link *wire.Link
	mu   sync.Mutex
}

// Send sends a message in frames of which all but the last have Number 1.
func (s *Sender) Send(m Message) error {
	body := m.Encode()
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(body) > chunkSize {
		if err := s.Link.Send(wire.Frame{Kind: wire.MsgPMIx, Number: 1, Body: body[:chunkSize]}); err != nil {
			return err
		}
		body = body[chunkSize:]
	}
	return s.Link.Send(wire.Frame{Kind: wire.MsgPMIx, Body: body})
}

// Joiner joins the frames of one link to messages. It is for one goroutine.
type Joiner struct{ kept []byte }

// Add adds a frame; ok says that m is a message.
func (j *Joiner) Add(f wire.Frame) (m Message, ok bool, err error) {
	if len(j.kept)+len(f.Body) > maxMessage {
		return m, false, errors.New("a PMIx message is too long")
	}
	if f.Number != 0 {
		j.kept = append(j.kept, f.Body...)
		return m, false, nil
	}
	body := f.Body
	if len(j.kept) > 0 {
		body = append(j.kept, f.Body...)
		j.kept = nil
	}
	m, err = Decode(body)
	return m, err == nil, err
}
