//go:build !planted_rest_of_gang

package planted

const RestOfGang = false
