package srun

import (
	"fmt"
	"strconv"
	"strings"
)

// PMI-2 is PMI-1's successor, on the same connection: a program that says so in its first
// line writes commands with a length of six characters before them, whose words a semicolon
// ends. Keys, values and barriers are those of PMI-1; MPICH and Slurm's libpmi2 speak it.

// pmi2Call is a command of PMI-2 that may be answered later.
type pmi2Call struct {
	rank int
	word map[string]string
}

// answerCall answers a command: the words that come after its name.
func (p *pmiServer) answerCall(c pmi2Call, words ...string) {
	body := "cmd=" + c.word["cmd"] + "-response;"
	if id, ok := c.word["thrid"]; ok {
		body += "thrid=" + id + ";"
	}
	for i := 0; i+1 < len(words); i += 2 {
		body += words[i] + "=" + strings.ReplaceAll(words[i+1], ";", ";;") + ";"
	}
	p.answer(c.rank, fmt.Sprintf("%6d%s", len(body), body))
}

// failCall refuses a command.
func (p *pmiServer) failCall(c pmi2Call, why string) {
	p.answerCall(c, "rc", "-1", "errmsg", why)
}

// handlePMI2 answers one command of a task.
func (p *pmiServer) handlePMI2(rank int, body string) {
	c := pmi2Call{rank, pmi2Words(body)}
	switch c.word["cmd"] {
	case "fullinit":
		p.answerCall(c, "rc", "0", "pmi-version", "2", "pmi-subversion", "0", "rank", strconv.Itoa(rank), "size", strconv.Itoa(p.info.Tasks),
			"appnum", strconv.Itoa(p.appNumber(rank)), "debugged", "FALSE", "pmiverbose", "FALSE")
	case "job-getid":
		p.answerCall(c, "rc", "0", "jobid", p.kvsName())
	case "kvs-put":
		p.setValue(c.word["key"], c.word["value"])
		p.answerCall(c, "rc", "0")
	case "kvs-get":
		p.answerFound(c, c.word["key"])
	case "info-getjobattr":
		p.answerFound(c, c.word["key"])
	case "kvs-fence":
		p.enterBarrier(rank, func() { p.answerCall(c, "rc", "0") })
	case "info-putnodeattr":
		p.setNodeValue(c)
	case "info-getnodeattr":
		p.getNodeValue(c)
	case "ring":
		p.enterRing(c)
	case "name-publish":
		p.setValue(publishedKey+c.word["name"], c.word["port"])
		p.answerCall(c, "rc", "0")
	case "name-unpublish":
		p.removeValue(publishedKey + c.word["name"])
		p.answerCall(c, "rc", "0")
	case "name-lookup":
		if port, ok := p.findValue(publishedKey + c.word["name"]); ok {
			p.answerCall(c, "rc", "0", "port", port, "value", port)
		} else {
			p.failCall(c, "nobody has published "+c.word["name"])
		}
	case "finalize":
		p.answerCall(c, "rc", "0")
	case "abort":
		code, err := strconv.Atoi(c.word["exitcode"])
		if err != nil {
			code = exitError
		}
		p.abort(rank, code, c.word["msg"])
	case "spawn":
		p.refuseSpawn(rank)
		p.failCall(c, spawnRefused)
	default:
		p.failCall(c, "srun does not serve "+c.word["cmd"])
	}
}

// answerFound answers with a value, if there is one.
func (p *pmiServer) answerFound(c pmi2Call, key string) {
	if value, ok := p.findValue(key); ok {
		p.answerCall(c, "rc", "0", "found", "TRUE", "value", value)
	} else {
		p.answerCall(c, "rc", "0", "found", "FALSE")
	}
}

// nodeKey is the key of a value that the ranks of a node share.
func (p *pmiServer) nodeKey(c pmi2Call) string {
	return fmt.Sprintf("node\x00%d\x00%s", p.nodes[c.rank], c.word["key"])
}

// setNodeValue enters a value of a node, and answers those who wait for it.
func (p *pmiServer) setNodeValue(c pmi2Call) {
	key := p.nodeKey(c)
	p.mu.Lock()
	p.values[key] = c.word["value"]
	waiting := p.wanted[key]
	delete(p.wanted, key)
	p.mu.Unlock()
	p.answerCall(c, "rc", "0")
	for _, w := range waiting {
		p.answerFound(w, key)
	}
}

// getNodeValue answers with a value of a node, once there is one if the task waits for it.
func (p *pmiServer) getNodeValue(c pmi2Call) {
	key := p.nodeKey(c)
	p.mu.Lock()
	_, ok := p.values[key]
	if !ok && c.word["wait"] == "TRUE" {
		p.wanted[key] = append(p.wanted[key], c)
		p.mu.Unlock()
		return
	}
	p.mu.Unlock()
	p.answerFound(c, key)
}

// enterRing is an addition of Slurm's libpmi2: every rank learns what its neighbours gave,
// and the sum of the counts before it.
func (p *pmiServer) enterRing(c pmi2Call) {
	p.mu.Lock()
	if p.ring == nil {
		p.ring = make(map[int]pmi2Call)
	}
	p.ring[c.rank] = c
	if len(p.ring) < p.info.Tasks {
		p.mu.Unlock()
		return
	}
	ring := p.ring
	p.ring = nil
	p.mu.Unlock()
	size, sum := p.info.Tasks, 0
	for r := range size {
		before, after := ring[(r+size-1)%size], ring[(r+1)%size]
		p.answerCall(ring[r], "rc", "0", "ring-count", strconv.Itoa(sum), "ring-left", before.word["ring-right"], "ring-right", after.word["ring-left"])
		n, _ := strconv.Atoi(ring[r].word["ring-count"])
		sum += n
	}
}

// pmi2Words reads "name=value;name=value;", in which a semicolon of a value is doubled.
func pmi2Words(body string) map[string]string {
	out := make(map[string]string)
	for body != "" {
		name, rest, ok := strings.Cut(body, "=")
		if !ok {
			break
		}
		var value strings.Builder
		for {
			i := strings.IndexByte(rest, ';')
			if i < 0 {
				value.WriteString(rest)
				rest = ""
				break
			}
			value.WriteString(rest[:i])
			rest = rest[i+1:]
			if !strings.HasPrefix(rest, ";") {
				break
			}
			value.WriteByte(';')
			rest = rest[1:]
		}
		if _, again := out[name]; !again { // the first command of a spawn counts
			out[name] = value.String()
		}
		body = rest
	}
	return out
}
