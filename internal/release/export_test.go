package release

// IdentifyLicence shows the tests what a text is.
func IdentifyLicence(text string) []string {
	return identifyLicences([]licenceText{{text: []byte(text)}})
}
