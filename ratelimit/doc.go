// Package ratelimit says when to try again. The number of failed attempts comes in, a waiting time goes out; a
// watch on progress says when patience has run out. It promises times that grow, are spread at random and stay bounded.
// It knows nothing of rows and of the network.
package ratelimit
