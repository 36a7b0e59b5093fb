// The whole flow with openid-client, which does in one call what oauth4webapi has in several.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'

import * as client from 'openid-client'

import { launch, open } from './support/browser.js'
import { listen } from './support/callback.js'
import { WHO_AM_I, ada, base } from './support/okt.js'
import { allowButton, denyButton, signIn } from './support/pages.js'

const options = { algorithm: 'oauth2', execute: [client.allowInsecureRequests] }

let browser
before(async () => {
  browser = await launch()
})
after(() => browser?.close())

/** Finds the server and registers; `auth` is how the client proves to be itself. */
function register(redirectUri, method = 'none', auth = client.None()) {
  const metadata = {
    client_name: 'openid-client',
    redirect_uris: [redirectUri],
    token_endpoint_auth_method: method,
    grant_types: ['authorization_code', 'refresh_token'],
  }
  return client.dynamicClientRegistration(new URL(base), metadata, auth, options)
}

/** Sends the person to us, and returns what comes back with what it is checked against. */
async function authorize(config, callback, decide = allowButton) {
  const pkceCodeVerifier = client.randomPKCECodeVerifier()
  const expectedState = client.randomState()
  const address = client.buildAuthorizationUrl(config, {
    redirect_uri: callback.redirectUri,
    scope: 'read',
    state: expectedState,
    code_challenge: await client.calculatePKCECodeChallenge(pkceCodeVerifier),
    code_challenge_method: 'S256',
    resource: base,
  })
  const visit = await open(browser, { elsewhere: [new URL(callback.redirectUri).origin] })
  await signIn(visit.page, address, ada)
  await decide(visit.page).click()
  const answer = await callback.answer()
  await visit.close()
  return { answer, checks: { pkceCodeVerifier, expectedState } }
}

const exchange = (config, { answer, checks }) =>
  client.authorizationCodeGrant(config, answer, checks, { resource: base })
const whoAmI = (config, token) => client.fetchProtectedResource(config, token, WHO_AM_I, 'GET')

async function assertRefused(config, token) {
  await assert.rejects(whoAmI(config, token), (error) => {
    assert.equal(error.code, 'OAUTH_WWW_AUTHENTICATE_CHALLENGE')
    assert.equal(error.status, 401)
    assert.equal(error.cause[0].parameters.error, 'invalid_token')
    return true
  })
}

// With and without a secret; client_secret_basic is in the other file.
for (const [method, auth] of [
  ['none', client.None],
  ['client_secret_post', client.ClientSecretPost],
]) {
  test(`the whole way with ${method}`, async (t) => {
    const callback = await listen()
    t.after(callback.close)
    const config = await register(callback.redirectUri, method, auth())
    assert.equal(config.serverMetadata().issuer, base)
    assert.equal(config.serverMetadata().supportsPKCE(), true)

    const first = await exchange(config, await authorize(config, callback))
    assert.equal(first.scope, 'read')
    assert.ok(first.expiresIn() > 0)
    assert.equal((await (await whoAmI(config, first.access_token)).json()).email, ada.email)

    const second = await client.refreshTokenGrant(config, first.refresh_token)
    assert.notEqual(second.refresh_token, first.refresh_token, 'refresh tokens rotate')
    assert.equal((await (await whoAmI(config, second.access_token)).json()).email, ada.email)

    await client.tokenRevocation(config, second.access_token, { token_type_hint: 'refresh_token' })
    for (const { access_token } of [first, second]) await assertRefused(config, access_token)
    await assert.rejects(client.refreshTokenGrant(config, second.refresh_token), { error: 'invalid_grant' })
  })
}

test('a client that registered before finds the server by its id', async (t) => {
  const callback = await listen()
  t.after(callback.close)
  const { client_id } = (await register(callback.redirectUri)).clientMetadata()
  const config = await client.discovery(new URL(base), client_id, undefined, client.None(), options)
  const tokens = await exchange(config, await authorize(config, callback))
  assert.equal((await (await whoAmI(config, tokens.access_token)).json()).email, ada.email)
})

test('a refresh token that was used long before ends the whole family', async (t) => {
  const callback = await listen()
  t.after(callback.close)
  const config = await register(callback.redirectUri)
  const first = await exchange(config, await authorize(config, callback))
  const second = await client.refreshTokenGrant(config, first.refresh_token)
  const third = await client.refreshTokenGrant(config, second.refresh_token)
  // Its successor was used, so no reply was lost: somebody else has it.
  await assert.rejects(client.refreshTokenGrant(config, first.refresh_token), { error: 'invalid_grant' })
  await assert.rejects(client.refreshTokenGrant(config, third.refresh_token), { error: 'invalid_grant' })
  await assertRefused(config, third.access_token)
})

test('a wrong verifier gets nothing', async (t) => {
  const callback = await listen()
  t.after(callback.close)
  const config = await register(callback.redirectUri)
  const asked = await authorize(config, callback)
  asked.checks.pkceCodeVerifier = client.randomPKCECodeVerifier()
  await assert.rejects(exchange(config, asked), { error: 'invalid_grant' })
})

test('a client that is denied hears so', async (t) => {
  const callback = await listen()
  t.after(callback.close)
  const config = await register(callback.redirectUri)
  await assert.rejects(exchange(config, await authorize(config, callback, denyButton)), { error: 'access_denied' })
})
