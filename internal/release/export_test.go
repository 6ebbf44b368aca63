package release

import (
	"compress/gzip"
	"os"
)

func init() {
	if os.Getenv("COX_LONG") == "" {
		compression = gzip.BestSpeed
	}
}

// IdentifyLicence shows the tests what a text is.
func IdentifyLicence(text string) []string {
	return identifyLicences([]licenceText{{text: []byte(text)}})
}

// WriteDebian writes a package of programs that are there, as the release before had it.
func WriteDebian(s Source, arch, file string, programs []Entry) error {
	text, err := packDebian(s, arch, programs, nil)
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}

// ReadPages is readPages; names begin with DocFolder.
var ReadPages = readPages

// DocFolder is docFolder.
const DocFolder = docFolder
