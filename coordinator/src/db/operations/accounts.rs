//! Users, their tokens, invitations and workers.

use jiff::Timestamp;
use rookery_common::ids::{RunName, UserId};
use rookery_common::protocol::people::{ActiveWorkers, ContributorDetail, OperatorAct};

use crate::db::error::Result;
use crate::db::models::{activity, contributors, invitations, operator_log, tokens, users};
use crate::db::sql::Ledger;
use crate::db::sql::transactions::{in_read, in_write};
use crate::db::types::{
    ContributorFilter, Contributors, InvitationDraft, InvitationInfo, LogFilter, Principal, Pulse,
    TokenCounts, TokenDraft, TokenInfo, UserChange, UserDraft, UserInfo,
};
use crate::db::use_cases::{registration, retention};
use crate::tokens::TokenHash;

impl Ledger {
    /// Creates a user with a first token. The operator log names the actor, unless the user
    /// registers without help and the token may only contribute; so it is with every new token.
    pub async fn create_user(
        &self,
        user: UserDraft,
        actor: &str,
        now: Timestamp,
    ) -> Result<UserId> {
        let actor = actor.to_owned();
        in_write!(self, part "users", registration::create(user, actor, now))
    }

    /// Gives a user another token.
    pub async fn add_token(
        &self,
        user: &str,
        token: TokenDraft,
        actor: &str,
        now: Timestamp,
    ) -> Result<()> {
        let (user, actor) = (user.to_owned(), actor.to_owned());
        in_write!(self, tokens::add(user, token, actor, now))
    }

    /// The tokens of a user, as [`tokens_of`](Self::tokens_of) gives them.
    pub async fn tokens(&self, user: &str) -> Result<Vec<TokenInfo>> {
        in_read!(self.readers, tokens::of_name(user))
    }

    /// The tokens of a user by number, valid ones first and of these the newest, then revoked ones:
    /// twice as many as may be valid at most.
    pub async fn tokens_of(&self, user: UserId) -> Result<Vec<TokenInfo>> {
        in_read!(self.readers, tokens::of_user(user.0))
    }

    /// One token of a user, also a revoked one.
    pub async fn token(&self, user: UserId, token: i64) -> Result<Option<TokenInfo>> {
        in_read!(self.readers, tokens::one(user, token))
    }

    /// How many tokens of a user are valid, and how many were made after a moment.
    pub async fn token_counts(&self, user: UserId, since: Timestamp) -> Result<TokenCounts> {
        in_read!(self.readers, tokens::counts(user, since))
    }

    /// Gives the user of a token another one; answers with its number.
    ///
    /// # Errors
    ///
    /// [`DbError::Revoked`](crate::db::DbError::Revoked) if the token that asks is not good
    /// any more.
    pub async fn issue_token(
        &self,
        by: &Principal,
        token: TokenDraft,
        now: Timestamp,
    ) -> Result<i64> {
        let by = by.clone();
        in_write!(self, tokens::issue(by, token, now))
    }

    /// Changes a token of the user of another token, or that one itself, for a new one; answers with
    /// its number.
    ///
    /// # Errors
    ///
    /// As [`issue_token`](Self::issue_token).
    pub async fn change_token(
        &self,
        by: &Principal,
        old: i64,
        new: TokenDraft,
        now: Timestamp,
    ) -> Result<i64> {
        let by = by.clone();
        let changed = in_write!(self, tokens::change(by, old, new, now));
        self.principals.forget();
        changed
    }

    /// Revokes a token and gives its user another; answers with its number.
    pub async fn rotate_token(
        &self,
        old: i64,
        new: TokenDraft,
        actor: &str,
        now: Timestamp,
    ) -> Result<i64> {
        let actor = actor.to_owned();
        let issued = in_write!(self, tokens::rotate(old, new, actor, now));
        self.principals.forget();
        issued
    }

    /// Revokes a token.
    pub async fn revoke_token(&self, token: i64, actor: &str, now: Timestamp) -> Result<()> {
        let actor = actor.to_owned();
        let revoked = in_write!(self, tokens::revoke(token, actor, now));
        self.principals.forget();
        revoked
    }

    /// Creates a user with a first token by an invitation, which then has a use less.
    pub async fn redeem(
        &self,
        user: UserDraft,
        invitation: TokenHash,
        now: Timestamp,
    ) -> Result<UserId> {
        in_write!(self, part "invitations", registration::redeem(user, invitation, now))
    }

    /// Keeps an invitation; answers with its number.
    pub async fn create_invitation(
        &self,
        invitation: InvitationDraft,
        actor: &str,
        now: Timestamp,
    ) -> Result<i64> {
        let actor = actor.to_owned();
        in_write!(self, invitations::create(invitation, actor, now))
    }

    /// All invitations, oldest first.
    pub async fn invitations(&self) -> Result<Vec<InvitationInfo>> {
        in_read!(self.readers, invitations::all())
    }

    /// Revokes an invitation.
    pub async fn revoke_invitation(
        &self,
        invitation: i64,
        actor: &str,
        now: Timestamp,
    ) -> Result<()> {
        let actor = actor.to_owned();
        in_write!(self, invitations::revoke(invitation, actor, now))
    }

    /// What operators did, newest first.
    pub async fn operator_log(&self, filter: LogFilter) -> Result<Vec<OperatorAct>> {
        in_read!(self.readers, operator_log::page(filter.clone()))
    }

    /// Blocks a user, ends the block, or gives the user another name.
    ///
    /// # Errors
    ///
    /// If somebody has that name, or one that looks like it: then nothing is changed.
    pub async fn change_user(
        &self,
        user: &str,
        change: UserChange,
        actor: &str,
        now: Timestamp,
    ) -> Result<()> {
        let (user, actor) = (user.to_owned(), actor.to_owned());
        let changed = in_write!(self, users::change(user, change, actor, now));
        self.principals.forget();
        changed
    }

    /// Deletes a user; answers with the number. Games, chunks and credit stay under a name made of the
    /// number; name, tokens and workers are gone, also from the operator log.
    pub async fn delete_user(&self, user: &str, actor: &str, now: Timestamp) -> Result<UserId> {
        let (user, actor) = (user.to_owned(), actor.to_owned());
        let deleted = in_write!(self, users::delete(user, actor, now));
        self.principals.forget();
        deleted
    }

    /// Who a token belongs to, unless it is unknown or revoked. What another process has changed in
    /// the last two seconds may be missing.
    pub async fn principal(&self, token: &TokenHash) -> Result<Option<Principal>> {
        match self.principals.get(token) {
            Some(principal) => Ok(Some(principal)),
            None => self.principal_now(token).await,
        }
    }

    /// The same as it stands in the ledger now.
    pub async fn principal_now(&self, token: &TokenHash) -> Result<Option<Principal>> {
        let asked = self.principals.forget_one(token);
        let principal = in_read!(self.readers, tokens::principal(token))?;
        if let Some(principal) = &principal {
            self.principals.keep(token, principal, asked);
        }
        Ok(principal)
    }

    /// Notes that a token is used now.
    pub async fn note_use(&self, token: i64, now: Timestamp) -> Result<()> {
        in_write!(self, tokens::note_use(token, now))
    }

    /// All users, by name.
    pub async fn users(&self) -> Result<Vec<UserInfo>> {
        in_read!(self.readers, users::list())
    }

    /// Contributors, and how many there are.
    pub async fn contributors(
        &self,
        filter: ContributorFilter,
        now: Timestamp,
    ) -> Result<Contributors> {
        in_read!(self.readers, contributors::list(&filter, now))
    }

    /// The contributor of this name, in a run or, if it is `None`, in all together.
    pub async fn contributor(
        &self,
        name: &str,
        run: Option<&RunName>,
        now: Timestamp,
    ) -> Result<ContributorDetail> {
        in_read!(self.readers, contributors::one(name, run, now))
    }

    /// How many workers there are, and how many jobs are out.
    pub async fn pulse(&self, now: Timestamp) -> Result<Pulse> {
        in_read!(self.readers, activity::pulse(now))
    }

    /// Removes some of the workers that were not heard since `before`, and tells how many: 0 if there
    /// are no more. Of each contributor the one that was heard last stays.
    pub async fn forget_workers(&self, before: Timestamp) -> Result<u64> {
        in_write!(self, part "forgotten", retention::workers(before))
    }

    /// Workers that were heard since `since`, at most `limit` of them one by one.
    pub async fn workers(&self, since: Timestamp, limit: u32) -> Result<ActiveWorkers> {
        in_read!(self.readers, activity::workers(None, since, limit))
    }

    /// Those of them whose last job was of a run.
    pub async fn workers_of(
        &self,
        run: &RunName,
        since: Timestamp,
        limit: u32,
    ) -> Result<ActiveWorkers> {
        in_read!(self.readers, activity::workers(Some(run), since, limit))
    }
}
