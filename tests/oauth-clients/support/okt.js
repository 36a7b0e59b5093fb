// The okt under test, and who is known there.

import assert from 'node:assert/strict'

const needed = (name) => process.env[name] || assert.fail(`${name} is not set; scripts/oauth-clients sets it`)

/** Its address, which is also the issuer. */
export const base = needed('OKT_URL')

/** The first account: it may do everything. */
export const ada = { email: needed('OKT_EMAIL'), password: needed('OKT_PASSWORD') }

/** Of somebody who signed in for it. */
export const WHO_AM_I = new URL('/api/v1/users/me', base)

/** Asks the API as a program would; anything but success is a failure of the test. */
export async function ask(method, path, { body, token } = {}) {
  const headers = { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) }
  const answer = await fetch(new URL(path, base), { method, headers, body: body && JSON.stringify(body) })
  const text = await answer.text()
  assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${text}`)
  return text ? JSON.parse(text) : undefined
}

/** A client that registered itself, without a library's help: for the tests that are about the pages. */
export function register(redirectUri, name = 'Ada’s Agent') {
  const client = { client_name: name, redirect_uris: [redirectUri], token_endpoint_auth_method: 'none' }
  return ask('POST', '/api/v1/oauth/register', { body: client })
}

/** Where such a client sends people. The challenge is RFC 7636's own; nobody here exchanges the code. */
export function question(client, changes = {}) {
  const url = new URL('/api/v1/oauth/authorize', base)
  const parameters = {
    response_type: 'code',
    client_id: client.client_id,
    redirect_uri: client.redirect_uris?.[0],
    scope: 'read fact:write',
    state: 'a state & more',
    code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
    code_challenge_method: 'S256',
    resource: base,
    ...changes,
  }
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined) url.searchParams.set(name, value)
  }
  return url
}

/** Somebody else, with a role in as many repositories as wanted. */
export async function somebody(name, repositories) {
  const person = { email: `${name}@example.org`, password: ada.password }
  const { user } = await ask('POST', '/api/v1/auth/register', { body: { ...person, name } })
  const { token } = await ask('POST', '/api/v1/auth/login', { body: ada })
  const ids = []
  for (let n = 1; n <= repositories; n++) {
    const body = { name: `${name}’s repository ${n}` }
    const { id } = await ask('POST', '/api/v1/repositories', { body, token })
    await ask('PUT', `/api/v1/repositories/${id}/members`, { body: { user_id: user.id, role: 'viewer' }, token })
    ids.push(id)
  }
  return { ...person, repositories: ids }
}
