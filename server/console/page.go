package console

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"html/template"

	"github.com/coxswain-sched/coxswain/server/transport"
)

// page is a plain page of this package: a headline, paragraphs and lines to type.
type page struct {
	Title string
	Texts []paragraph
}

// paragraph is a sentence or two, and then perhaps a command.
type paragraph struct{ Text, Command string }

// notBuilt is the page of a server without a console.
var notBuilt = page{"This cox has no web console", []paragraph{
	{"The server runs, and its API and all commands work. The web console was not built into this program.", ""},
	{"From the sources: install Node 20 or newer, build again, and restart the server.", "make build"},
	{"Or install a release: its programs have the console.", ""},
	{"Until then, the live view in a terminal shows the queue and the nodes.", "cox top"},
}}

// style is of plain pages; its hash stands in their policy, so that nothing else is a style there.
const style = `:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:36rem;margin:12vh auto;padding:0 1rem}h1{font-size:1.4rem}pre{padding:.6rem .8rem;border:1px solid;border-radius:.3rem;overflow:auto}`

var stylePolicy = func() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
}()

var pageTemplate = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><title>Coxswain</title><style>` + style + `</style></head>
<body><main><h1>{{.Title}}</h1>
{{range .Texts}}<p>{{.Text}}</p>
{{with .Command}}<pre><code>{{.}}</code></pre>
{{end}}{{end}}</main></body></html>
`))

// writePage answers with a plain page.
func writePage(c *transport.Call, status int, p *page) {
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, p); err != nil {
		c.WriteError(err)
		return
	}
	h := c.W.Header()
	setPageHeaders(h, stylePolicy)
	h.Set("Cache-Control", "no-store")
	c.WriteBody(status, "text/html; charset=utf-8", b.Bytes())
}
