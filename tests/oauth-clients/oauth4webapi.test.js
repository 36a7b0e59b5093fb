// The whole flow with oauth4webapi, step by step as its documentation has it.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'

import * as oauth from 'oauth4webapi'

import { launch, open } from './support/browser.js'
import { listen } from './support/callback.js'
import { WHO_AM_I, ada, base } from './support/okt.js'
import { allowButton, denyButton, signIn } from './support/pages.js'

const insecure = { [oauth.allowInsecureRequests]: true }
const issuer = new URL(base)

let browser
let as
before(async () => {
  browser = await launch()
  as = await discover()
})
after(() => browser?.close())

async function discover() {
  const answer = await oauth.discoveryRequest(issuer, { algorithm: 'oauth2', ...insecure })
  return oauth.processDiscoveryResponse(issuer, answer)
}

/** A client that registered itself, and how it proves to be itself. */
async function register(redirectUri, method = 'none') {
  const metadata = {
    client_name: 'oauth4webapi',
    redirect_uris: [redirectUri],
    token_endpoint_auth_method: method,
    grant_types: ['authorization_code', 'refresh_token'],
  }
  const answer = await oauth.dynamicClientRegistrationRequest(as, metadata, insecure)
  const client = await oauth.processDynamicClientRegistrationResponse(answer)
  const proofs = {
    none: () => oauth.None(),
    client_secret_basic: () => oauth.ClientSecretBasic(client.client_secret),
    client_secret_post: () => oauth.ClientSecretPost(client.client_secret),
  }
  return { client, proof: proofs[method]() }
}

/** Sends the person to us, and returns what comes back with what it takes to go on. */
async function authorize(client, callback, { decide = allowButton, resource = base } = {}) {
  const verifier = oauth.generateRandomCodeVerifier()
  const state = oauth.generateRandomState()
  const address = new URL(as.authorization_endpoint)
  for (const [name, value] of Object.entries({
    response_type: 'code',
    client_id: client.client_id,
    redirect_uri: callback.redirectUri,
    scope: 'read',
    state,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    resource,
  })) {
    address.searchParams.set(name, value)
  }
  const visit = await open(browser, { elsewhere: [new URL(callback.redirectUri).origin] })
  await signIn(visit.page, address, ada)
  await decide(visit.page).click()
  const answer = await callback.answer()
  await visit.close()
  return { answer, state, verifier }
}

async function exchange({ client, proof }, callback, { answer, state, verifier }, resource = base) {
  const parameters = oauth.validateAuthResponse(as, client, answer, state)
  const options = { additionalParameters: { resource }, ...insecure }
  const asked = [parameters, callback.redirectUri, verifier, options]
  const tokens = await oauth.authorizationCodeGrantRequest(as, client, proof, ...asked)
  return oauth.processAuthorizationCodeResponse(as, client, tokens)
}

const whoAmI = (token) => oauth.protectedResourceRequest(token, 'GET', WHO_AM_I, undefined, undefined, insecure)

/** The answer to a token that does not work, as the library reads it. */
async function refused(token) {
  const error = await whoAmI(token).then(
    (answer) => assert.fail(`no challenge came, but ${answer.status}`),
    (error) => error,
  )
  assert.ok(error instanceof oauth.WWWAuthenticateChallengeError, error)
  assert.equal(error.status, 401)
  const [{ scheme, parameters }] = error.cause
  assert.equal(scheme, 'bearer')
  return parameters
}

test('discovery finds the issuer, PKCE and iss', () => {
  assert.equal(as.issuer, base)
  assert.deepEqual(as.code_challenge_methods_supported, ['S256'])
  assert.equal(as.authorization_response_iss_parameter_supported, true)
})

test('discovery under another name is refused by the client', async () => {
  const answer = await oauth.discoveryRequest(issuer, { algorithm: 'oauth2', ...insecure })
  await assert.rejects(oauth.processDiscoveryResponse(new URL('http://127.0.0.1:1'), answer), {
    code: 'OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED',
  })
})

for (const method of ['none', 'client_secret_basic']) {
  test(`the whole way with ${method}`, async (t) => {
    const callback = await listen()
    t.after(callback.close)
    const registered = await register(callback.redirectUri, method)
    const { client, proof } = registered
    const asked = await authorize(client, callback)
    assert.equal(asked.answer.searchParams.get('iss'), as.issuer)
    assert.equal(callback.answers.length, 1)
    assert.equal(callback.answers[0].method, 'GET')
    assert.equal(callback.answers[0].headers.referer, undefined)

    const first = await exchange(registered, callback, asked)
    assert.equal(first.token_type, 'bearer')
    assert.equal(first.scope, 'read')
    assert.ok(first.expires_in > 0)
    assert.equal((await (await whoAmI(first.access_token)).json()).email, ada.email)

    const again = await oauth.refreshTokenGrantRequest(as, client, proof, first.refresh_token, insecure)
    const second = await oauth.processRefreshTokenResponse(as, client, again)
    assert.notEqual(second.refresh_token, first.refresh_token, 'refresh tokens rotate')
    assert.notEqual(second.access_token, first.access_token)
    assert.equal((await (await whoAmI(second.access_token)).json()).email, ada.email)

    const revoked = await oauth.revocationRequest(as, client, proof, second.refresh_token, insecure)
    await oauth.processRevocationResponse(revoked)
    for (const { access_token } of [first, second]) {
      assert.equal((await refused(access_token)).error, 'invalid_token')
    }
    const late = await oauth.refreshTokenGrantRequest(as, client, proof, second.refresh_token, insecure)
    await assert.rejects(oauth.processRefreshTokenResponse(as, client, late), { error: 'invalid_grant' })
  })
}

test('a wrong verifier gets nothing, and does not use up the code', async (t) => {
  const callback = await listen()
  t.after(callback.close)
  const registered = await register(callback.redirectUri)
  const asked = await authorize(registered.client, callback)
  const wrong = { ...asked, verifier: oauth.generateRandomCodeVerifier() }
  await assert.rejects(exchange(registered, callback, wrong), { error: 'invalid_grant' })
  assert.ok((await exchange(registered, callback, asked)).access_token)
})

test('a code works once, and its second use ends what the first gave', async (t) => {
  const callback = await listen()
  t.after(callback.close)
  const registered = await register(callback.redirectUri)
  const asked = await authorize(registered.client, callback)
  const { access_token } = await exchange(registered, callback, asked)
  await assert.rejects(exchange(registered, callback, asked), { error: 'invalid_grant' })
  await refused(access_token)
})

test('a client that is denied hears so, from us', async (t) => {
  const callback = await listen()
  t.after(callback.close)
  const { client } = await register(callback.redirectUri)
  const { answer, state } = await authorize(client, callback, { decide: denyButton })
  assert.equal(answer.searchParams.get('iss'), as.issuer)
  assert.throws(() => oauth.validateAuthResponse(as, client, answer, state), {
    code: 'OAUTH_AUTHORIZATION_RESPONSE_ERROR',
    error: 'access_denied',
  })
})

test('the refusal of a request leads to the resource and to its authorization server', async () => {
  const parameters = await refused('nonsense')
  const answer = await oauth.resourceDiscoveryRequest(issuer, insecure)
  assert.equal(answer.url, parameters.resource_metadata, 'the header names the address that the standard makes up')
  const resource = await oauth.processResourceDiscoveryResponse(issuer, answer)
  assert.deepEqual(resource.authorization_servers, [as.issuer])
  assert.ok(resource.scopes_supported.includes(parameters.scope))

  const mcp = new URL('/mcp', base)
  const found = await oauth.processResourceDiscoveryResponse(mcp, await oauth.resourceDiscoveryRequest(mcp, insecure))
  assert.equal(found.resource, mcp.href)
})

test('a request without a token is told where to get one, and of no error', async () => {
  const answer = await fetch(WHO_AM_I)
  assert.equal(answer.status, 401)
  const challenge = answer.headers.get('www-authenticate')
  assert.match(challenge, /^Bearer .*resource_metadata="/)
  assert.doesNotMatch(challenge, /error=/)
})
